"""tests/engine/history."""
