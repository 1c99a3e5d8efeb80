"""Tests of ambermq/tools/compaction: compactions, from the preview to the commit."""
