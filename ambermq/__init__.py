"""AmberMQ, a durable AMQP 1.0 message broker that never forgets how it got where it is."""

__all__ = ["__version__"]

__version__ = "0.1.0"
