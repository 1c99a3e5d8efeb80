"""tests/tools/vhosts."""
