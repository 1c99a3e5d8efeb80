"""Tests of ambermq/tools/terminal: output, errors, sizes and durations."""
