"""tests/engine/decide."""
