"""tests/log/format."""
