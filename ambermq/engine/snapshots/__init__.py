"""engine/snapshots."""
