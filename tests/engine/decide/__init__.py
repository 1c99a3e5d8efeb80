"""Tests of ambermq/engine/decide: decisions, refusals and what they leave unchanged."""
