"""protocol/amqp10/session."""
