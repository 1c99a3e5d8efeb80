"""tests/protocol/amqp10/session."""
