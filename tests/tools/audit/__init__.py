"""Tests of ambermq/tools/audit: the chain, its writer, and the commands."""
