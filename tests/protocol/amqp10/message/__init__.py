"""tests/protocol/amqp10/message."""
