"""tests/log/recovery."""
