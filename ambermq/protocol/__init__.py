"""AMQP 1.0: codec, frames, sans-IO state machines, the gateway to the engine, and the server."""
