"""The engine's limits: everything that could grow has one, and it has a name here."""

from dataclasses import dataclass, field
from typing import Final

from ambermq.engine.errors import EngineError
from ambermq.engine.model.queue_template import PREDEFINED, QueueTemplates

__all__ = ["EngineConfig"]

_POSITIVE: Final = (
    "tick_messages_max",
    "tick_bytes_max",
    "tick_changes_max",
    "dispatch_messages_max",
    "dispatch_bytes_max",
    "scan_messages_max",
    "lazy_sync_ms",
)
"""What a tick takes of something: of nothing at a time there is no end. A timer of no time at all would never rest."""


@dataclass(frozen=True, slots=True)
class EngineConfig:
    """Limits and habits of one virtual host's engine. Raises EngineError where a value cannot work."""

    tick_messages_max: int = 2000
    """A tick ends early when this many messages were gathered."""
    tick_bytes_max: int = 1 << 20
    """A tick ends early when this many bytes of messages were gathered: the next is read while this one is synced."""
    tick_changes_max: int = 2000
    """A tick ends early after so many changes of queues and wiring, a run of messages being one for each queue that it
    reaches, and what a link held that goes one a message: what is left of its commands is for the next. A message for
    more queues than that reaches them in several ticks, and is in none before it is in all."""
    dispatch_messages_max: int = 2000
    """Deliveries handed out in one tick, and queues looked at for it; what is left is dispatched in the next."""
    dispatch_bytes_max: int = 4 << 20
    """Bytes of the messages handed out in one tick: the message that takes it there is the last."""
    scan_messages_max: int = 200
    """Messages looked at in one tick for consumers with selectors."""
    lazy_write_ms: int = 8
    """A settlement that nobody waits for is decided and written no later than this, joined with others."""
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
    muxers_max: int = 100_000
    """Muxers of a virtual host."""
    message_queues_max: int = 100_000
    """Queues that one message reaches; one that would reach more is rejected."""
    attachments_max: int = 2_000_000
    """Attachments of a virtual host, those of its queues by name included."""
    chain_muxers_max: int = 256
    """Muxers on one way of a message, one after the other."""
    argument_bytes_max: int = 4096
    """A destination, pattern, property or selector that an attachment or a sender names, in UTF-8 bytes."""
    conditions_max: int = 32
    """Conditions of one attachment."""
    routes_cached_max: int = 10_000
    """Destinations whose routes are remembered, of each muxer and of a virtual host."""
    name_bytes_max: int = 255
    """The name of a queue or muxer, in UTF-8 bytes."""
    auto_create: bool = True
    """An address that does not exist is created as a queue when a peer attaches to it."""
    snapshot_bytes: int = 1 << 30
    """The broker takes a snapshot by itself when so much was logged since the last one; 0: not for that."""
    snapshot_interval_s: int = 3600
    """And after this long, where anything was logged since; 0: not for that."""
    snapshot_pause_s: int = 30
    """Between two snapshots that the broker takes by itself there is at least so much time."""
    snapshot_keep: int = 5
    """So many of its own it keeps, the newest; the newest of all stays, and those that somebody asked for."""
    snapshot_age_s_max: int = 0
    """Its own that are older go as well; 0: no age is too old."""
    snapshot_bytes_per_s: int = 32 << 20
    """A snapshot is written no faster, since the log shares its disk; 0: as fast as the disk goes."""
    snapshots_waiting_max: int = 16
    """Snapshots asked for while one is being written; more are refused."""
    snapshots_max: int = 256
    """Snapshots of a log; the broker's own make room for those asked for. With so many asked for more are refused, and
    the broker takes none by itself, which it logs."""
    templates: QueueTemplates = field(default=PREDEFINED)
    """What queues are made with, by their names."""

    def __post_init__(self) -> None:
        for name in _POSITIVE:
            if getattr(self, name) < 1:
                raise EngineError(f"{name} must be at least 1, not {getattr(self, name)}")
