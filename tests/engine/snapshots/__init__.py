"""tests/engine/snapshots."""
