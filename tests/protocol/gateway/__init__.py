"""Tests of ambermq/protocol/gateway: two peers and an engine in memory."""
