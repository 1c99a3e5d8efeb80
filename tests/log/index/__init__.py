"""tests/log/index."""
