"""tests/engine/compaction."""
