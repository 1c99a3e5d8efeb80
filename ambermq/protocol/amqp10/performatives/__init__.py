"""protocol/amqp10/performatives."""
