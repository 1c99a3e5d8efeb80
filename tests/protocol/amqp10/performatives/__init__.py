"""tests/protocol/amqp10/performatives."""
