"""tests/tools/compaction."""
