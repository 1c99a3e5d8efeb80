"""engine/history."""
