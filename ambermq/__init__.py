"""AmberMQ, a durable AMQP 1.0 message broker whose state is the fold of an append-only log.

Public are `ambermq.__version__` and the module `ambermq.spark`. All other modules are private: they may change in any
release. The stable surface is the command `ambermq`, AMQP, the management node and the file formats.

    tools       what a person or a pipeline runs
    protocol    AMQP 1.0, the gateway to the engine, and the server
    engine      the broker as a deterministic state machine
    snapshot    persistent collections, and the block file of a snapshot
    log         the append-only log on the disk
Imports go down this list only; log and snapshot do not import each other. Contracts in pyproject.toml
check this for each package.
"""

__all__ = ["__version__"]

__version__ = "0.1.0"
