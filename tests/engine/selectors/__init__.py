"""Tests of ambermq/engine/selectors: the language, its limits and its three values."""
