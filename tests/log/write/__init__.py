"""Tests of ambermq/log/write: what goes in whole and in order, spares and a full disk."""
