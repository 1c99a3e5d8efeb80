"""Tests of ambermq/engine/loop: ticks, effects and starts over a real log."""
