"""tests/log/compaction."""
