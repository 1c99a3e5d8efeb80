"""tests/tools/config."""
