"""tests/protocol/amqp10/connection."""
