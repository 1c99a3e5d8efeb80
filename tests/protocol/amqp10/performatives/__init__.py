"""Tests of ambermq/protocol/amqp10/performatives: composite types to bytes and back."""
