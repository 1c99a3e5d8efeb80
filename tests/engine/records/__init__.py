"""Tests of ambermq/engine/records: events to bytes and back."""
