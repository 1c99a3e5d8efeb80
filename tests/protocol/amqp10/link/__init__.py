"""tests/protocol/amqp10/link."""
