"""tests/log/manifest."""
