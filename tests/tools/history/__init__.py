"""Tests of ambermq/tools/history: events and stories as text and as values."""
