"""Tests of ambermq/protocol/amqp10/message: sections and outlines."""
