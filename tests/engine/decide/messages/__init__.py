"""Tests of ambermq/engine/decide/messages: publish, fan-out and the maxima of queues."""
