"""tests/log/write."""
