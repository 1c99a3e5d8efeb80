"""What may be asked of the engine. A command is decided once: it becomes events, effects, or a refusal.

`key` and `link` are opaque to the engine: they come back in the effects that answer.
"""

from collections.abc import Callable
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
    bodies: list[Buffer]
    id_hashes: list[int]
    size: int
    """Bytes of all bodies."""
    durable: bool = True
    settled: bool = False
    """The sender waits for no outcome."""

    def join(self, other: "Publish", *, bytes_max: int) -> bool:
        """Take a run that follows this one into it, when both are alike and it stays within `bytes_max`."""
        if (
            other.link is not self.link
            or other.first_id != (self.first_id + len(self.bodies)) & 0xFFFFFFFF
            or other.durable is not self.durable
            or other.settled is not self.settled
            or other.size + self.size > bytes_max
        ):
            return False
        self.bodies += other.bodies
        self.id_hashes += other.id_hashes
        self.size += other.size
        return True

    def split(self, count: int) -> "tuple[Publish, Publish]":
        """Return the first `count` messages and the others as runs of their own."""
        return self._part(0, count), self._part(count, len(self.bodies))

    def _part(self, start: int, end: int) -> "Publish":
        bodies = self.bodies[start:end]
        return Publish(
            self.link,
            self.producer,
            (self.first_id + start) & 0xFFFFFFFF,
            bodies,
            self.id_hashes[start:end],
            sum(map(len, bodies)),
            self.durable,
            self.settled,
        )


@final
@dataclass(slots=True)
class Settle:
    """A consumer's outcome over a run of deliveries. What it does not hold is ignored."""

    consumer: int
    words: bytes
    outcome: Outcome
    reply: Any = None
    """Comes back in OutcomeApplied once the outcome is durable; None when the consumer does not wait."""

    def join(self, other: "Settle", *, bytes_max: int) -> bool:
        """Take a run that follows this one into it, when both are alike, nobody waits, and it fits `bytes_max`."""
        if (
            other.consumer != self.consumer
            or (other.outcome is not self.outcome and other.outcome != self.outcome)
            or other.reply is not None
            or self.reply is not None
            or len(self.words) + len(other.words) > bytes_max
        ):
            return False
        self.words += other.words
        return True


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
