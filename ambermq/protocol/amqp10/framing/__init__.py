"""protocol/amqp10/framing."""
