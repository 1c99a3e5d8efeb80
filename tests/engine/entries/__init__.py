"""Tests of ambermq/engine/entries: words, columns and the order of redelivery."""
