"""Tests of ambermq/tools/wiring: commands and documents."""
