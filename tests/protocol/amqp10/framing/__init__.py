"""Tests of ambermq/protocol/amqp10/framing: frames, recognisers against the general decoder, templates."""
