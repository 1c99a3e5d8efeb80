"""Tests of ambermq/tools/past: moments, names and low priority."""
