"""protocol/amqp10."""
