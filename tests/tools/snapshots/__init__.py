"""tests/tools/snapshots."""
