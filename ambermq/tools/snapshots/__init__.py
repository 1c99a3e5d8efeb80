"""tools/snapshots."""
