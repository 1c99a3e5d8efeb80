"""Tests of ambermq/protocol/management: operations, type by type."""
