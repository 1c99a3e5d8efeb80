"""Tests of ambermq/tools/dataset: history as columns."""
