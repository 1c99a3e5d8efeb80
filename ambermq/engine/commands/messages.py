"""Commands on messages: publish them, settle their deliveries, remove a damaged one."""

from collections.abc import Callable, Sequence
from typing import Any, Final, final

from msgspec import Struct

from ambermq.engine.commands.uploads import Upload
from ambermq.engine.entries.discard_reason import DiscardReason, MoveReason
from ambermq.engine.entries.id_digest import DIGEST_BYTES
from ambermq.engine.entries.outcome import Outcome
from ambermq.engine.entries.priority import PRIORITY_DEFAULT
from ambermq.log.buffer import Buffer

__all__ = ["EXPIRED", "GiveUp", "Identities", "MakeDue", "Publish", "RenewLocks", "ReportDamage", "Settle"]

EXPIRED: Final = -1
"""The time to live of messages that have expired when they arrive."""


@final
class Identities(Struct):
    """The message-ids of a run, for the queues that remember them; a decision adds it to what it stores."""

    queues: tuple[int, ...]
    digests: bytes
    """The digest of each id (engine/entries/id_digest.py)."""
    ids_max: int
    """The most ids that a queue remembers."""

    def part(self, start: int, end: int) -> "Identities":
        """Return those of the messages from index `start` up to `end`."""
        return Identities(self.queues, self.digests[start * DIGEST_BYTES : end * DIGEST_BYTES], self.ids_max)


@final
class Publish(Struct):
    """A run of messages from one producer, alike in durability and settlement."""

    link: Any
    producer: int
    first_id: int
    """The delivery-id of the first message; the others have the next ids."""
    bodies: list[Buffer]
    id_hashes: list[int]
    size: int
    """The sum of the bytes of all bodies."""
    durable: bool = True
    settled: bool = False
    """The sender has settled the messages and needs no outcome."""
    may_create: Callable[[str], bool] | None = None
    """Whether a message may create the queue of this name at its address; None: any."""
    by: str = ""
    """The user, for a queue that a message creates; empty if none is known."""
    ttl_ms: int = 0
    """The time to live of each message in milliseconds; 0: none. In a transaction it may be EXPIRED."""
    time_ms: int = 0
    """When they are to be available, in milliseconds since 1970; 0: at once, or after `delay_ms`."""
    delay_ms: int = 0
    """The milliseconds after their arrival when they are to be available."""
    transaction: Any = None
    """The Transaction that they belong to; None for none."""
    priority: int = PRIORITY_DEFAULT
    """The priority of each message, 0 to 9."""
    identities: Identities | None = None
    """The ids that queues remember; None if none does."""
    groups: list[int] = []
    """The group of each message (entries/group.py), 0 for none; empty if none has one."""
    tag: bytes = b""
    """The delivery-tag to keep until the sender settles it: that of one message; empty for none."""
    upload: Upload | None = None
    """The pieces of a single large message that are stored already; its body is the last piece. None for none."""
    times_ms: list[int] | None = None
    """The `time_ms` of each message, if they differ; else None."""
    expires_ms: int = 0
    """When they expire, in milliseconds since 1970; 0: never, or by `ttl_ms`, which has precedence."""
    lives_ms: list[int] | None = None
    """The `ttl_ms` of each message, or else the `expires_ms` of each, if they differ; else None."""

    @property
    def heads(self) -> Sequence[Buffer]:
        """The messages, or the beginning of a large one: what muxers, keys and ids are read from."""
        return self.bodies if self.upload is None else [self.upload.head]

    @property
    def sizes(self) -> list[int]:
        """The bytes of each message."""
        return list(map(len, self.bodies)) if self.upload is None else [self.size] * len(self.bodies)

    def join(self, other: "Publish", *, bytes_max: int) -> bool:
        """Append the next run if it is alike and both fit into `bytes_max`; return whether it did."""
        if (
            other.link is not self.link
            or other.first_id != (self.first_id + len(self.bodies)) & 0xFFFFFFFF
            or other.durable is not self.durable
            or other.settled is not self.settled
            or bool(other.ttl_ms) is not bool(self.ttl_ms)
            or bool(other.expires_ms) is not bool(self.expires_ms)
            or other.transaction is not self.transaction
            or bool(other.time_ms) is not bool(self.time_ms)
            or other.delay_ms != self.delay_ms
            or other.priority != self.priority
            or self.tag
            or other.tag
            or other.size + self.size > bytes_max
        ):
            return False
        self.add(other)
        return True

    def add(self, other: "Publish") -> None:
        """Append the messages of another run, whose other properties are alike."""
        if self.groups or other.groups:
            none, others = [0] * len(self.bodies), [0] * len(other.bodies)
            self.groups = (self.groups or none) + (other.groups or others)
        if other.time_ms != self.time_ms or self.times_ms or other.times_ms:
            if self.times_ms is None:
                self.times_ms = [self.time_ms] * len(self.bodies)
            self.times_ms += other.times_ms or [other.time_ms] * len(other.bodies)
        if other.ttl_ms != self.ttl_ms or other.expires_ms != self.expires_ms or self.lives_ms or other.lives_ms:
            if self.lives_ms is None:
                self.lives_ms = [self.ttl_ms or self.expires_ms] * len(self.bodies)
            self.lives_ms += other.lives_ms or [other.ttl_ms or other.expires_ms] * len(other.bodies)
        self.bodies += other.bodies
        self.id_hashes += other.id_hashes
        self.size += other.size

    def split(self, count: int) -> "tuple[Publish, Publish]":
        """Return the first `count` messages and the other messages as two runs."""
        return self.part(0, count), self.part(count, len(self.bodies))

    def part(self, start: int, end: int) -> "Publish":
        """Return the messages from index `start` up to `end` as a run."""
        bodies = self.bodies[start:end]
        upload = self.upload if bodies else None
        return Publish(
            self.link,
            self.producer,
            (self.first_id + start) & 0xFFFFFFFF,
            bodies,
            self.id_hashes[start:end],
            sum(map(len, bodies)) if upload is None else self.size,
            self.durable,
            self.settled,
            self.may_create,
            self.by,
            self.ttl_ms,
            self.time_ms,
            self.delay_ms,
            self.transaction,
            self.priority,
            None if self.identities is None else self.identities.part(start, end),
            self.groups[start:end],
            self.tag,
            upload,
            self.times_ms and self.times_ms[start:end],
            self.expires_ms,
            self.lives_ms and self.lives_ms[start:end],
        )


@final
class Settle(Struct):
    """A consumer's outcome over a run of deliveries. Words that it does not hold are ignored."""

    consumer: int
    words: bytes
    outcome: Outcome
    reply: Any = None
    """OutcomeApplied carries it when the outcome is durable; None if the consumer needs no answer."""

    def join(self, other: "Settle", *, bytes_max: int) -> bool:
        """Append another run if it is alike, neither needs an answer, and both fit; return whether it did."""
        if (
            other.consumer != self.consumer
            or (other.outcome is not self.outcome and other.outcome != self.outcome)
            or other.reply is not None
            or self.reply is not None
        ):
            return False
        return self.take(other.words, bytes_max=bytes_max)

    def take(self, words: bytes, *, bytes_max: int) -> bool:
        """Append deliveries with the same outcome if they fit into `bytes_max`; return whether it did."""
        if len(self.words) + len(words) > bytes_max:
            return False
        self.words += words
        return True


@final
class ReportDamage(Struct):
    """Remove the entry of a message whose bytes do not match their CRC."""

    queue: int
    word: int


@final
class GiveUp(Struct):
    """A queue gives waiting or set-aside messages up, for a reason; the loop makes the command itself."""

    queue: int
    words: bytes
    reason: MoveReason | DiscardReason
    """A DiscardReason ends them, whatever the queue's dead-letter target is."""
    is_again: bool = False
    """Whether the messages were tried before."""


@final
class MakeDue(Struct):
    """Messages of a queue have waited until their time; the loop makes the command itself."""

    queue: int
    words: list[int]
    """In the order of their times."""


@final
class RenewLocks(Struct):
    """Renew the locks of deliveries: their time begins again. If one has expired, it is refused and none is renewed.

    Its answer is what `read` makes of the time of all of them, in milliseconds since 1970.
    """

    key: Any
    queue: str
    """The address of the queue."""
    deliveries: list[tuple[int, int]]
    """The word and the attempt of each delivery."""
    read: Callable[[int], dict[str, Any]]
    consumers: frozenset[int] | None = None
    """Only deliveries that these consumers hold count as held; None: those of any consumer."""
