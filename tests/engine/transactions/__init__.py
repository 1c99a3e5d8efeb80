"""Tests of ambermq/engine/transactions: limits, rooms and ages."""
