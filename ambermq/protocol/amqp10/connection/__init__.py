"""protocol/amqp10/connection."""
