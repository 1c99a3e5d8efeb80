"""Tests of ambermq/log/index: an index against a walk of its segment."""
