"""tests/log/storage."""
