"""Tests of ambermq/log/storage: the disk, the simulated disk, threads and syncs."""
