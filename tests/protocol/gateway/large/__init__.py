"""Tests of ambermq/protocol/gateway/large: messages that arrive and leave piece by piece."""
