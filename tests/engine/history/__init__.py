"""Tests of ambermq/engine/history: the past, the story of one message, and what differs."""
