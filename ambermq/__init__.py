"""AmberMQ, a durable AMQP 1.0 message broker that never forgets how it got where it is.

Public are `ambermq.__version__` and the module `ambermq.spark`. All other modules are private: they may change in any
release. The stable surface is the command `ambermq`, AMQP, the management node and the file formats.
"""

__all__ = ["__version__"]

__version__ = "0.1.0"
