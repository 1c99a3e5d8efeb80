"""tests/engine/loop."""
