"""Tests of ambermq/engine/loop/timers: when a message expires, and when it is available."""
