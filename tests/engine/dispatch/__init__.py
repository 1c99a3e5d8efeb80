"""Tests of ambermq/engine/dispatch: turns, credit and selectors."""
