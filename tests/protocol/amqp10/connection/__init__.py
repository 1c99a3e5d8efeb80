"""Tests of ambermq/protocol/amqp10/connection: handshakes, pipelining and bad input."""
