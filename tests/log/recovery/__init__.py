"""Tests of ambermq/log/recovery: every cut and every damage, and what is still there afterwards."""
