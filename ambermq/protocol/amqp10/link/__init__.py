"""protocol/amqp10/link."""
