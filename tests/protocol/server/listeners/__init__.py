"""Tests of ambermq/protocol/server/listeners: sockets, and what comes before the first byte of AMQP."""
