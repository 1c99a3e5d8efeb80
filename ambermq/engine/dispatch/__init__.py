"""engine/dispatch."""
