"""Tests of ambermq/protocol/gateway/sources: browsers and the events of the log."""
