"""Tests of ambermq/tools: the command tree, start-up and failures."""
