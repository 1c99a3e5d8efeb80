"""Tests of ambermq/engine/patterns: patterns against a plain matcher."""
