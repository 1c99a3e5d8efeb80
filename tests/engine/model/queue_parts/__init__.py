"""Tests of ambermq/engine/model/queue_parts."""
