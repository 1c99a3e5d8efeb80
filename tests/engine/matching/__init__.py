"""tests/engine/matching."""
