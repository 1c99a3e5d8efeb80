"""Tests of ambermq/engine/settings: what each setting of a queue may be."""
