"""Tests of ambermq/protocol/management/messages: the operations on single messages of a queue."""
