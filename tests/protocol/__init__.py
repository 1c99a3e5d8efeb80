"""Tests of ambermq/protocol: peers in memory, and the rigs that the tests of AMQP share."""
