"""Tests of ambermq/log/read: bodies, readers from outside and search."""
