"""Tests of ambermq/log/compaction: tasks that give the same bytes each time, and adoption."""
