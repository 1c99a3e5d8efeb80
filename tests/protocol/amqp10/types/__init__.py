"""tests/protocol/amqp10/types."""
