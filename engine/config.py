"""The engine's limits: everything that could grow has one, and it has a name here."""

from dataclasses import dataclass

__all__ = ["EngineConfig"]


@dataclass(frozen=True, slots=True)
class EngineConfig:
    """Limits and habits of one virtual host's engine."""

    tick_messages_max: int = 2000
    """A tick ends early when this many messages were gathered."""
    tick_bytes_max: int = 1 << 20
    """A tick ends early when this many bytes of messages were gathered: the next is read while this one is synced."""
    dispatch_messages_max: int = 2000
    """Deliveries handed out in one tick; what is left is dispatched in the next."""
    dispatch_bytes_max: int = 4 << 20
    """Bytes of the messages handed out in one tick: the message that takes it there is the last."""
    lazy_write_ms: int = 8
    """A settlement that nobody waits for is written no later than this."""
    lazy_sync_ms: int = 20
    """A written batch is synced no later than this, even if nobody waits."""
    mark_ms: int = 1000
    """An idle log gets a batch that carries its last durable end after this long."""
    chunk_bytes: int = 1 << 20
    """A message larger than this is stored in chunk records of this size."""
    queue_messages_max: int = 100_000_000
    """Messages waiting on one queue; publishing more is rejected."""
    queues_max: int = 1_000_000
    """Queues of a virtual host."""
    consumers_max: int = 100_000
    """Consumers of a virtual host."""
    producers_max: int = 100_000
    """Producers of a virtual host."""
    name_bytes_max: int = 255
    """The name of a queue, in UTF-8 bytes."""
    auto_create: bool = True
    """An address that does not exist is created as a queue when a peer attaches to it."""
