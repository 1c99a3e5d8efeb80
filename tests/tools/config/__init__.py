"""Tests of ambermq/tools/config: settings and schedules."""
