"""tests/engine/dispatch."""
