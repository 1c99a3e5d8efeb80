"""Tests of ambermq/protocol/amqp10/session: windows, ids and dispositions."""
