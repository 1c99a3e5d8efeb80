"""tools/compaction."""
