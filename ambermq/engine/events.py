"""What has happened: the facts of the log, as objects per run. `engine.records` gives them their bytes.

Rule 1. An event is a fact: applying it never refuses, and needs nothing but the state before it.
Rule 2. A run of n alike is one object with columns; n = 1 is the ordinary case, not another path.
Rule 3. `offset` is that of the run's first record: it is the identity of what the record creates.
"""

from collections.abc import Sequence
from typing import Final, final

from msgspec import Struct
from msgspec.structs import astuple

from ambermq.engine.model.attachment import Argument
from ambermq.engine.model.lifetime import Lifetime
from ambermq.engine.model.muxer import MuxerKind, Options
from ambermq.engine.model.outcome import Outcome
from ambermq.engine.model.publish_options import PLAIN_SENDING, PublishOptions
from ambermq.engine.model.queue import Settings
from ambermq.engine.model.subscription import Subscription
from ambermq.engine.model.vhost_mode import VhostMode
from ambermq.log.buffer import Buffer

__all__ = [
    "Acquired",
    "Attached",
    "Chunked",
    "Compacted",
    "ConsumerAttached",
    "ConsumerDetached",
    "Damaged",
    "Detached",
    "Drawn",
    "Event",
    "Lost",
    "MuxerDeclared",
    "MuxerDeleted",
    "MuxerUpdated",
    "ProducerAttached",
    "ProducerDetached",
    "Published",
    "Purged",
    "QueueDeclared",
    "QueueDeleted",
    "QueueUpdated",
    "Reset",
    "Settled",
    "Started",
    "Subscribed",
]

_READ_BACK_COUNT: Final = 8
"""Columns of Published that stand in its record, the first ones."""


@final
class Started(Struct):
    """The broker started: everything acquired is available again with one more failed delivery; no link lives on."""

    offset: int
    time_us: int
    epoch: int
    mode: VhostMode = VhostMode.AUTOMATIC
    """Of the virtual host: the first start says it, later ones repeat it."""


@final
class QueueDeclared(Struct):
    """A queue exists; its id is the event's offset."""

    offset: int
    time_us: int
    name: str
    settings: Settings
    lifetime: Lifetime = Lifetime.PERMANENT


@final
class QueueUpdated(Struct):
    """A queue goes by other settings from now on; what is on it stays."""

    offset: int
    time_us: int
    queue: int
    settings: Settings
    """All of them, changed or not."""


@final
class QueueDeleted(Struct):
    """A queue is gone with all that was on it, its attachments, the links to it, and the subscription that it was."""

    offset: int
    time_us: int
    queue: int


@final
class MuxerDeclared(Struct):
    """A muxer exists; its id is the event's offset."""

    offset: int
    time_us: int
    name: str
    kind: MuxerKind
    options: Options = Options()


@final
class MuxerUpdated(Struct):
    """A muxer goes by other options from now on; a LOSSY one goes on counting its draws."""

    offset: int
    time_us: int
    muxer: int
    options: Options
    """All of them, changed or not."""


@final
class MuxerDeleted(Struct):
    """A muxer is gone; its attachments are gone before it."""

    offset: int
    time_us: int
    muxer: int


@final
class Attached(Struct):
    """A member receives what the muxer passes on by an argument; the attachment's id is the event's offset."""

    offset: int
    time_us: int
    muxer: int
    member: int
    """A queue or a muxer."""
    argument: Argument = None


@final
class Detached(Struct):
    """An attachment is gone."""

    offset: int
    time_us: int
    muxer: int
    member: int
    attachment: int
    """Its id; 0 in a record of version 0.1: there the argument says which."""
    argument: Argument = None


@final
class Drawn(Struct):
    """A LOSSY muxer has drawn for so many messages; the routes that came out are in what was published with it."""

    offset: int
    time_us: int
    muxer: int
    count: int


@final
class ProducerAttached(Struct):
    """A peer may send; the producer's id is the event's offset."""

    offset: int
    time_us: int
    muxer: int
    """Where it sends to; 0 for the address that each message names."""
    destination: str
    """What its messages are for; empty where each of them says it."""
    container: str
    link: str
    sending: PublishOptions = PLAIN_SENDING
    node: int = 0
    """The queue or muxer with an end that it sends to, 0 for others."""
    owns: int = 0
    """The one that it had made, 0 for none."""


@final
class ProducerDetached(Struct):
    """A peer no longer sends."""

    offset: int
    time_us: int
    producer: int


@final
class ConsumerAttached(Struct):
    """A peer may receive; the consumer's id is the event's offset."""

    offset: int
    time_us: int
    queue: int
    container: str
    link: str
    selector: str = ""
    """What it takes of a queue, empty for everything."""
    owns: int = 0
    """The queue or muxer that it had made, 0 for none."""


@final
class ConsumerDetached(Struct):
    """A peer no longer receives; what it still held came back with one more failed delivery."""

    offset: int
    time_us: int
    consumer: int


@final
class Chunked(Struct):
    """A piece of a large message, named later by its publish record; garbage when that never comes."""

    offset: int
    time_us: int
    producer: int
    body: Buffer


@final
class Published(Struct, eq=False):
    """A run of messages, stored once, at consecutive offsets, available on each of `queues`."""

    offset: int
    time_us: int
    queues: tuple[int, ...]
    producer: int
    words: bytes
    """The entries' words, packed."""
    size: int
    """Bytes that the words account for."""
    durable: bool = True
    chunks: tuple[int, ...] = ()
    """Offsets of the chunk records before the body; only ever for a run of one."""
    bodies: Sequence[Buffer] = ()
    """The messages as they are written; empty in an event that was read back."""
    id_hashes: Sequence[int] = ()
    """A hash of each message-id, 0 for none; empty in an event that was read back."""

    def __eq__(self, other: object) -> bool:
        """Compare what is read back."""
        return type(other) is Published and astuple(self)[:_READ_BACK_COUNT] == astuple(other)[:_READ_BACK_COUNT]

    __hash__ = None  # type: ignore[assignment]  # mutable, like the others


@final
class Acquired(Struct):
    """A run of deliveries: `words` were dealt to `consumers`, one each in turn, beginning with the first."""

    offset: int
    time_us: int
    queue: int
    consumers: tuple[int, ...]
    words: bytes


@final
class Settled(Struct):
    """A consumer's outcome over a run of the deliveries that it held."""

    offset: int
    time_us: int
    queue: int
    consumer: int
    outcome: Outcome
    words: bytes


@final
class Purged(Struct):
    """A queue's available entries below the offset `before` are gone."""

    offset: int
    time_us: int
    queue: int
    before: int


@final
class Damaged(Struct):
    """The bytes of a run of messages cannot be read: their entries on the queue are set aside and never delivered."""

    offset: int
    time_us: int
    queue: int
    words: bytes


@final
class Lost(Struct):
    """Records from `first` up to but not including `end` are gone; references into the range mean nothing."""

    offset: int
    time_us: int
    first: int
    end: int


@final
class Subscribed(Struct):
    """What comes to a queue is a subscription's; it ends with the queue."""

    offset: int
    time_us: int
    queue: int
    subscription: Subscription


@final
class Reset(Struct):
    """The virtual host is empty: no queue, message, muxer or link is left; epoch and time go on."""

    offset: int
    time_us: int


@final
class Compacted(Struct):
    """History begins at `horizon` now: of what was written before, new segments keep the live messages alone."""

    offset: int
    time_us: int
    horizon: int
    segments_before: int
    """Segments that were replaced ..."""
    segments_after: int
    """... and those that took their place."""
    records_before: int
    records_after: int
    bytes_before: int
    bytes_after: int


Event = (
    Started
    | QueueDeclared
    | QueueDeleted
    | MuxerDeclared
    | MuxerDeleted
    | Attached
    | Detached
    | ProducerAttached
    | ProducerDetached
    | ConsumerAttached
    | ConsumerDetached
    | Chunked
    | Published
    | Acquired
    | Settled
    | Purged
    | Damaged
    | Lost
    | Reset
    | Compacted
    | Drawn
    | Subscribed
    | QueueUpdated
    | MuxerUpdated
)
