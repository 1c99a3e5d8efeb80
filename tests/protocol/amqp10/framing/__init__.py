"""tests/protocol/amqp10/framing."""
