"""What may be asked of the engine. A command is decided once: it becomes events, effects, or a refusal.

`key` and `link` are opaque to the engine: they come back in the effects that answer.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, final

from engine.outcome import Outcome
from engine.queue import Settings
from engine.state import State
from log.buffer import Buffer

__all__ = [
    "AttachConsumer",
    "AttachProducer",
    "Command",
    "DeclareQueue",
    "DeleteQueue",
    "DetachConsumer",
    "DetachProducer",
    "Inspect",
    "Publish",
    "PurgeQueue",
    "ReportDamage",
    "Settle",
]


@final
@dataclass(slots=True)
class Publish:
    """A run of messages from one producer, alike in durability and settlement."""

    link: Any
    producer: int
    first_id: int
    """The delivery-id of the first; the rest follow it."""
    bodies: Sequence[Buffer]
    id_hashes: Sequence[int]
    size: int
    """Bytes of all bodies."""
    durable: bool = True
    settled: bool = False
    """The sender waits for no outcome."""


@final
@dataclass(slots=True)
class Settle:
    """A consumer's outcome over a run of deliveries. What it does not hold is ignored."""

    consumer: int
    words: bytes
    outcome: Outcome
    reply: Any = None
    """Comes back in OutcomeApplied once the outcome is durable; None when the consumer does not wait."""


@final
@dataclass(slots=True)
class AttachProducer:
    """A peer wants to send to an address."""

    key: Any
    address: str
    container: str
    link: str


@final
@dataclass(slots=True)
class DetachProducer:
    """A producer is gone."""

    producer: int


@final
@dataclass(slots=True)
class AttachConsumer:
    """A peer wants to receive from an address."""

    key: Any
    address: str
    container: str
    link: str
    settled: bool = False
    """Deliveries are sent settled: they are accepted as they leave."""


@final
@dataclass(slots=True)
class DetachConsumer:
    """A consumer is gone; `unsent` are words it was dealt that never reached it: they go back uncounted."""

    consumer: int
    unsent: bytes = b""


@final
@dataclass(slots=True)
class DeclareQueue:
    """A queue shall exist. Declaring it again alike changes nothing; otherwise it is refused."""

    key: Any
    name: str
    settings: Settings


@final
@dataclass(slots=True)
class DeleteQueue:
    """A queue shall be gone."""

    key: Any
    name: str
    if_unused: bool = False
    if_empty: bool = False


@final
@dataclass(slots=True)
class PurgeQueue:
    """Everything available on a queue shall be gone."""

    key: Any
    name: str


@final
@dataclass(slots=True)
class ReportDamage:
    """A message's bytes failed their CRC: set its entry aside."""

    queue: int
    word: int


@final
@dataclass(slots=True)
class Inspect:
    """Answer `key` with what `read` sees in the state, once everything that it saw is durable."""

    key: Any
    read: Callable[[State], Any]


Command = (
    Publish
    | Settle
    | AttachProducer
    | DetachProducer
    | AttachConsumer
    | DetachConsumer
    | DeclareQueue
    | DeleteQueue
    | PurgeQueue
    | ReportDamage
    | Inspect
)
