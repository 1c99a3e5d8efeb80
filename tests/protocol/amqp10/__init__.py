"""Tests of ambermq/protocol/amqp10: state tables, events and limits."""
