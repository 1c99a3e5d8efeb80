"""Tests of ambermq/engine/fold: a fold equals the live state."""
