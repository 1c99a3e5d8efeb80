"""protocol/amqp10/types."""
