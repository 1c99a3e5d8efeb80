"""Tests of ambermq/protocol/amqp10/types: values to bytes and back."""
