"""engine/compaction."""
