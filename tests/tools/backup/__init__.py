"""Tests of ambermq/tools/backup: export, restore and verify."""
