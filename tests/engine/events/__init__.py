"""Tests of ambermq/engine/events: each event described whole, and its bytes."""
