"""Tests of ambermq/engine/compaction: what is kept, and commits beside a loop."""
