"""tests/protocol/amqp10."""
