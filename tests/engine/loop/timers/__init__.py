"""Tests of ambermq/engine/loop/timers: what ends by time."""
