"""Tests of ambermq/engine/snapshots: states to files and back."""
