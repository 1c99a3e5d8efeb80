"""Tests of ambermq/engine/model: values, transitions and their models."""
