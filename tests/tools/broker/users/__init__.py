"""Tests of ambermq/tools/broker/users."""
