"""Tests of ambermq/tools/broker: serving, children and stopped engines."""
