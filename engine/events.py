"""What has happened: the facts of the log, as objects per run. `engine.records` gives them their bytes.

Rule 1. An event is a fact: applying it never refuses, and needs nothing but the state before it.
Rule 2. A run of n alike is one object with columns; n = 1 is the ordinary case, not another path.
Rule 3. `offset` is that of the run's first record: it is the identity of what the record creates.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import final

from engine.muxer import MuxerKind
from engine.outcome import Outcome
from engine.queue import Settings
from log.buffer import Buffer

__all__ = [
    "Acquired",
    "Attached",
    "Chunked",
    "ConsumerAttached",
    "ConsumerDetached",
    "Damaged",
    "Detached",
    "Event",
    "Lost",
    "MuxerDeclared",
    "ProducerAttached",
    "ProducerDetached",
    "Published",
    "Purged",
    "QueueDeclared",
    "QueueDeleted",
    "Reset",
    "Settled",
    "Started",
]


@final
@dataclass(slots=True)
class Started:
    """The broker started: everything acquired is available again with one more failed delivery; no link lives on."""

    offset: int
    time_us: int
    epoch: int


@final
@dataclass(slots=True)
class QueueDeclared:
    """A queue exists; its id is the event's offset."""

    offset: int
    time_us: int
    name: str
    settings: Settings


@final
@dataclass(slots=True)
class QueueDeleted:
    """A queue is gone with all that was on it, and so are its attachments."""

    offset: int
    time_us: int
    queue: int


@final
@dataclass(slots=True)
class MuxerDeclared:
    """A muxer exists; its id is the event's offset."""

    offset: int
    time_us: int
    name: str
    kind: MuxerKind


@final
@dataclass(slots=True)
class Attached:
    """A queue receives what the muxer routes to a destination."""

    offset: int
    time_us: int
    muxer: int
    queue: int
    destination: str


@final
@dataclass(slots=True)
class Detached:
    """An attachment is gone."""

    offset: int
    time_us: int
    muxer: int
    queue: int
    destination: str


@final
@dataclass(slots=True)
class ProducerAttached:
    """A peer may send; the producer's id is the event's offset."""

    offset: int
    time_us: int
    muxer: int
    destination: str
    container: str
    link: str


@final
@dataclass(slots=True)
class ProducerDetached:
    """A peer no longer sends."""

    offset: int
    time_us: int
    producer: int


@final
@dataclass(slots=True)
class ConsumerAttached:
    """A peer may receive; the consumer's id is the event's offset."""

    offset: int
    time_us: int
    queue: int
    container: str
    link: str


@final
@dataclass(slots=True)
class ConsumerDetached:
    """A peer no longer receives; what it still held came back with one more failed delivery."""

    offset: int
    time_us: int
    consumer: int


@final
@dataclass(slots=True)
class Chunked:
    """A piece of a large message, named later by its publish record; garbage when that never comes."""

    offset: int
    time_us: int
    producer: int
    body: Buffer


@final
@dataclass(slots=True)
class Published:
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
    bodies: Sequence[Buffer] = field(default=(), compare=False)
    """The messages as they are written; empty in an event that was read back."""
    id_hashes: Sequence[int] = field(default=(), compare=False)
    """A hash of each message-id, 0 for none; empty in an event that was read back."""


@final
@dataclass(slots=True)
class Acquired:
    """A run of deliveries: `words` were dealt to `consumers`, one each in turn, beginning with the first."""

    offset: int
    time_us: int
    queue: int
    consumers: tuple[int, ...]
    words: bytes


@final
@dataclass(slots=True)
class Settled:
    """A consumer's outcome over a run of the deliveries that it held."""

    offset: int
    time_us: int
    queue: int
    consumer: int
    outcome: Outcome
    words: bytes


@final
@dataclass(slots=True)
class Purged:
    """A queue's available entries below the offset `before` are gone."""

    offset: int
    time_us: int
    queue: int
    before: int


@final
@dataclass(slots=True)
class Damaged:
    """A message's bytes cannot be read: its entry on the queue is set aside and never delivered."""

    offset: int
    time_us: int
    queue: int
    word: int


@final
@dataclass(slots=True)
class Lost:
    """Records from `first` up to but not including `end` are gone; references into the range mean nothing."""

    offset: int
    time_us: int
    first: int
    end: int


@final
@dataclass(slots=True)
class Reset:
    """The virtual host is empty: no queue, message, muxer or link is left; epoch and time go on."""

    offset: int
    time_us: int


Event = (
    Started
    | QueueDeclared
    | QueueDeleted
    | MuxerDeclared
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
)
