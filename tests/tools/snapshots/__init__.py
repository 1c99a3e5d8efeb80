"""Tests of ambermq/tools/snapshots: the commands snapshot and backup."""
