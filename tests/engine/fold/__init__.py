"""tests/engine/fold."""
