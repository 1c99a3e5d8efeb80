"""The settings of the engine: a limit for everything that can grow, and timers."""

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
    "matching_us_max",
    "selectors_per_message_max",
    "selector_tokens_max",
    "lazy_sync_ms",
    "dead_letter_moves_max",
    "dead_letter_queues_max",
    "dead_letter_retry_ms",
    "transaction_ms_max",
    "dedup_ids_max",
    "groups_max",
)
"""These are at least 1: a tick with a limit of 0 makes no progress, and a timer of 0 ms never rests."""


@dataclass(frozen=True, slots=True)
class EngineConfig:
    """The settings of one virtual host's engine. Raises EngineError if a value is out of range."""

    tick_messages_max: int = 2000
    """The maximum of published messages in one tick; a tick starts early when they are queued."""
    tick_bytes_max: int = 1 << 20
    """The maximum bytes of published messages in one tick; the next ones are read while this tick is synced."""
    tick_changes_max: int = 2000
    """The maximum of changes of queues and wiring in one tick; the rest of a command is decided in the next tick. A run
    of messages is one change for each queue that it reaches. Each message that an ended link held is one change. A
    message for more queues takes several ticks, and becomes visible on all of them at once."""
    dispatch_messages_max: int = 2000
    """The maximum of deliveries in one tick, and of queues visited for them; the next tick dispatches the rest. A
    quarter as many messages expire, or are made available at their time."""
    dispatch_bytes_max: int = 4 << 20
    """The maximum bytes of deliveries in one tick; the message that reaches it is the last one of the tick."""
    scan_messages_max: int = 200
    """The maximum of messages read in one tick for consumers with selectors."""
    matching_us_max: int = 2000
    """The maximum time in one tick for routing published messages by their fields or patterns, and again for the
    selectors of receivers. The rest is matched in the next tick; the result is the same."""
    lazy_write_ms: int = 8
    """The longest delay before a settlement is decided and written, if its receiver needs no answer; until then it is
    joined with other settlements of its consumer."""
    lazy_sync_ms: int = 20
    """The longest delay before a written batch is synced, if no effect waits for it."""
    mark_ms: int = 1000
    """The time after which an idle log gets a mark, a batch that carries its last durable end."""
    chunk_bytes: int = 1 << 20
    """The size of a chunk record; a message larger than this is stored in chunks."""
    queue_messages_max: int = 100_000_000
    """The maximum of available messages on one queue; further messages are rejected."""
    dead_letter_moves_max: int = 16
    """The maximum of moves of one message to dead-letter targets since a person last redrove it. The next one ends it,
    with the reason `loop`."""
    dead_letter_queues_max: int = 256
    """The maximum of queues that a dead letter reaches through a muxer; one for more is set aside."""
    dead_letter_retry_ms: int = 1000
    """The time after which messages that are set aside are tried again."""
    outcome_annotations_bytes_max: int = 64 << 20
    """The maximum bytes of memory for what outcomes of receivers add to messages: the descriptions of dead letters, and
    the annotations of the outcome modified. Equal ones of a queue count once, each with 256 bytes beside its own. What
    exceeds it is left out."""
    dedup_ids_max: int = 100_000
    """The maximum of message-ids that a queue with `dedup_window_ms` remembers, at about 250 bytes each. The oldest are
    forgotten first."""
    transaction_messages_max: int = 10_000
    """The maximum of messages of one transaction, once for each queue, and of deliveries that it settles."""
    transaction_bytes_max: int = 64 << 20
    """The maximum bytes of the messages of one transaction."""
    transactions_bytes_max: int = 256 << 20
    """The maximum bytes of the messages of all open transactions, which are in memory; further ones are rejected."""
    transaction_ms_max: int = 60_000
    """The age at which an open transaction is rolled back."""
    groups_max: int = 10_000
    """The maximum of groups of one queue that are bound to consumers by themselves. Further ones share bindings by
    their hash, at most 256."""
    suspended_links_max: int = 10_000
    """The maximum of suspended links in a virtual host; what a further one left unsettled returns at once."""
    suspended_deliveries_max: int = 1_000_000
    """The maximum of deliveries that all suspended links hold, with the delivery-tags that are kept for senders."""
    suspended_s_max: int = 300
    """The longest time that a suspended link is kept after the end of its connection; 0: it ends with that."""
    unsettled_tags_max: int = 4096
    """The maximum of delivery-tags that are kept for one sender in receiver-settle-mode second. Messages beyond it are
    rejected until the sender settles some."""
    queues_max: int = 1_000_000
    """The maximum of queues in a virtual host."""
    consumers_max: int = 100_000
    """The maximum of consumers in a virtual host."""
    producers_max: int = 100_000
    """The maximum of producers in a virtual host."""
    muxers_max: int = 100_000
    """The maximum of muxers in a virtual host."""
    message_queues_max: int = 100_000
    """The maximum of queues that one message reaches; a message for more is rejected."""
    attachments_max: int = 2_000_000
    """The maximum of attachments in a virtual host, with those of queues to QUEUE by their names."""
    chain_muxers_max: int = 256
    """The maximum of muxers on one path of a message."""
    selectors_per_message_max: int = 10_000
    """The maximum of selectors of attachments that one published message is tested with; a message that needs more is
    rejected. Equal selectors of a muxer count once."""
    argument_bytes_max: int = 4096
    """The maximum UTF-8 bytes of a destination, pattern, property or selector of an attachment or a link."""
    selector_tokens_max: int = 600
    """The maximum of tokens in a selector of an attachment or a link: names, literals, signs and keywords. The parser
    takes up to 9 us a token in one step."""
    conditions_max: int = 32
    """The maximum of conditions in one attachment."""
    routes_cached_max: int = 10_000
    """The maximum of cached destinations, for each muxer and for the virtual host."""
    name_bytes_max: int = 255
    """The maximum UTF-8 bytes of the name of a queue or muxer."""
    auto_create: bool = True
    """Whether an attach to an address without a queue creates the queue."""
    temporary_nodes: bool = True
    """Whether clients may create temporary queues and topics."""
    durable_subscriptions: bool = True
    """Whether clients may create durable subscriptions; those that exist stay."""
    snapshot_bytes: int = 1 << 30
    """The broker takes a snapshot when this many bytes were logged since the last one; 0: off."""
    snapshot_events: int = 4_000_000
    """The broker takes a snapshot when this many events were logged since the last one; 0: off. A start folds the
    events after the newest snapshot. An event that schedules messages counts as 40, one that gives messages a time to
    live of their own as 8."""
    snapshot_interval_s: int = 3600
    """The broker takes a snapshot this long after the last one, if an event was logged since then; 0: off."""
    snapshot_pause_s: int = 30
    """The minimum time between two automatic snapshots."""
    snapshot_keep: int = 5
    """The number of automatic snapshots to keep. The newest snapshot and requested ones always stay."""
    snapshot_age_s_max: int = 0
    """Automatic snapshots older than this are deleted too; 0: off."""
    snapshot_bytes_per_s: int = 32 << 20
    """The maximum write rate of a snapshot, because the log shares its disk; 0: no limit."""
    snapshots_waiting_max: int = 16
    """The maximum of requested snapshots while one is being written; more are refused."""
    snapshots_max: int = 256
    """The maximum of snapshots of a log. Automatic snapshots are deleted to make room for requested ones. If all are
    requested ones, more are refused, and the broker takes no automatic snapshot and logs this."""
    templates: QueueTemplates = field(default=PREDEFINED)
    """The queue templates."""

    def __post_init__(self) -> None:
        for name in _POSITIVE:
            if getattr(self, name) < 1:
                raise EngineError(f"{name} must be at least 1, not {getattr(self, name)}")
