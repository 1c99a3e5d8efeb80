"""engine/loop."""
