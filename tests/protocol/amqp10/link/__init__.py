"""Tests of ambermq/protocol/amqp10/link: credit, drain and deliveries."""
