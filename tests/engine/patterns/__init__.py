"""tests/engine/patterns."""
