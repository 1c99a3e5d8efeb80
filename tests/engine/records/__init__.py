"""tests/engine/records."""
