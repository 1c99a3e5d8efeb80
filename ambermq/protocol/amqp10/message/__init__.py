"""protocol/amqp10/message."""
