"""tests/log/read."""
