"""Tests of ambermq/log/segments: what is read of a segment."""
