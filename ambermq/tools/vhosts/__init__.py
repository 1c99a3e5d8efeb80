"""tools/vhosts."""
