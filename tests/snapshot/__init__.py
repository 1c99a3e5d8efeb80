"""Tests of ambermq/snapshot: collections against Python's own, and the block file."""
