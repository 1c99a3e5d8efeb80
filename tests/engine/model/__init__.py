"""tests/engine/model."""
