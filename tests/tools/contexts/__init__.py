"""Tests of ambermq/tools/contexts: the commands, and what other commands make of a context."""
