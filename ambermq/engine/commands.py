"""What may be asked of the engine. A command is decided once: it becomes events, effects, or a refusal.

`key` and `link` are opaque to the engine: they come back in the effects that answer.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, final

from msgspec import Struct

from ambermq.engine.effects import Effect
from ambermq.engine.model.attachment import Argument
from ambermq.engine.model.lifetime import Dynamic
from ambermq.engine.model.muxer import MuxerKind, Options
from ambermq.engine.model.outcome import Outcome
from ambermq.engine.model.publish_options import Unroutable
from ambermq.engine.model.queue import Settings
from ambermq.engine.model.state import State
from ambermq.engine.model.subscription import SubscriptionRequest
from ambermq.log.buffer import Buffer

__all__ = [
    "AttachConsumer",
    "AttachMember",
    "AttachProducer",
    "Command",
    "CommitCompaction",
    "CompactionCommand",
    "DeclareMuxer",
    "DeclareQueue",
    "DeleteMuxer",
    "DeleteQueue",
    "DeleteSnapshot",
    "DeleteSubscription",
    "DetachConsumer",
    "DetachMember",
    "DetachProducer",
    "EndLinks",
    "EndNodes",
    "ExplainRoute",
    "Inspect",
    "InspectSnapshots",
    "NameSnapshot",
    "Publish",
    "PurgeQueue",
    "RecordCompaction",
    "ReportDamage",
    "ResetHost",
    "Settle",
    "SnapshotCommand",
    "TakeSnapshot",
    "UpdateMuxer",
    "UpdateQueue",
]


@final
class Publish(Struct):
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
        return self.part(0, count), self.part(count, len(self.bodies))

    def part(self, start: int, end: int) -> "Publish":
        """Return some of the messages, neighbours, as a run of their own."""
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
class Settle(Struct):
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
        ):
            return False
        return self.take(other.words, bytes_max=bytes_max)

    def take(self, words: bytes, *, bytes_max: int) -> bool:
        """Take more deliveries into it, of a run that is alike, when it stays within `bytes_max`."""
        if len(self.words) + len(words) > bytes_max:
            return False
        self.words += words
        return True


@final
class AttachProducer(Struct):
    """A peer wants to send to an address; to that which each message names where `address` is empty."""

    key: Any
    address: str
    container: str
    link: str
    unroutable: Unroutable = Unroutable.RELEASE
    is_immediate: bool = False
    dynamic: Dynamic | None = None
    """It sends to a node that the broker makes and names; `address` says nothing then."""


@final
class DetachProducer(Struct):
    """A producer is gone."""

    producer: int


@final
class AttachConsumer(Struct):
    """A peer wants to receive from an address."""

    key: Any
    address: str
    container: str
    link: str
    settled: bool = False
    """Deliveries are sent settled: they are accepted as they leave."""
    selector: str = ""
    """What it takes, empty for everything."""
    subscription_request: SubscriptionRequest = SubscriptionRequest()
    """How it subscribes, where the address is a topic's."""
    dynamic: Dynamic | None = None
    """It receives from a node that the broker makes and names; `address` says nothing then."""
    is_recalled: bool = False
    """It names a durable subscription and does not say what that is of; `address` says nothing then."""


@final
class DetachConsumer(Struct):
    """A consumer is gone; `unsent` are words it was dealt that never reached it: they go back uncounted."""

    consumer: int
    unsent: bytes = b""
    is_closed: bool = False
    """For good: a durable subscription ends with it."""


@final
class DeclareQueue(Struct):
    """A queue shall exist. Declaring it again alike changes nothing; otherwise it is refused."""

    key: Any
    name: str
    settings: Settings


@final
class UpdateQueue(Struct):
    """A queue shall go by other settings. What is not said stays, what is so already changes nothing.

    Answered with the map that `read` makes of the state after it, and `updated`: whether anything changed; once that is
    durable.
    """

    key: Any
    name: str
    read: Callable[[State], Any]
    messages_max: int | None = None
    template: str | None = None
    """What it was made from: another one than that is refused."""


@final
class DeleteQueue(Struct):
    """A queue shall be gone."""

    key: Any
    name: str
    if_unused: bool = False
    if_empty: bool = False


@final
class DeleteSubscription(Struct):
    """A subscription shall be gone, by its name or that of its queue."""

    key: Any
    name: str
    container: str | None = None
    """Whose it is; None: not said."""
    force: bool = False
    """Receivers that it has are ended; else it is refused."""


@final
class DeclareMuxer(Struct):
    """A muxer shall exist. Declaring it again alike changes nothing; otherwise it is refused."""

    key: Any
    name: str
    kind: MuxerKind
    options: Options = Options()


@final
class UpdateMuxer(Struct):
    """A muxer shall go by other options. Otherwise as UpdateQueue."""

    key: Any
    name: str
    read: Callable[[State], Any]
    probability: float | None = None
    seed: int | None = None
    kind: MuxerKind | None = None
    """What it is: another one than that is refused; so it is with the separator."""
    separator: str | None = None


@final
class DeleteMuxer(Struct):
    """A muxer shall be gone, with its attachments and those by which messages come to it."""

    key: Any
    name: str
    if_unused: bool = False
    """Refused where anybody sends or passes on to it."""
    if_empty: bool = False
    """Refused where it has attachments."""


@final
class EndNodes(Struct):
    """Nodes that something has happened to shall go, those whose end that was: the rest of a command of many changes.

    The engine alone makes it (ending.py).
    """

    nodes: tuple[int, ...]
    closed: tuple[int, ...]
    """Those whose own link, which had them made, is gone."""
    deleted: tuple[int, ...]
    """Those that are deleted, whatever their end is."""
    then: tuple[Effect, ...]
    """What leaves when all is done."""


@final
class EndLinks(Struct):
    """Links that the state has no more shall hear of it: the rest of a command that took along many.

    The engine alone makes it (ending.py).
    """

    consumers: tuple[int, ...]
    producers: tuple[int, ...]
    why: tuple[str, str]
    """Condition and description."""
    then: tuple[Effect, ...]
    """What leaves when all are told."""


@final
class AttachMember(Struct):
    """A muxer shall pass messages on to a member: a queue, or a muxer named `muxer:NAME`."""

    key: Any
    muxer: str
    member: str
    argument: Argument = None
    argument_name: str = ""
    """What the argument was taken for, as in engine/decide/attachment_arguments.py; empty: not said."""


@final
class DetachMember(Struct):
    """A muxer shall pass messages on to a member no more, by this argument."""

    key: Any
    muxer: str
    member: str
    argument: Argument = None
    argument_name: str = ""
    """What the argument was taken for, as in engine/decide/attachment_arguments.py; empty: not said."""
    attachment: int = 0
    """The one of this id instead, whatever its member and argument: the member may be gone."""


@final
class PurgeQueue(Struct):
    """Everything available on a queue shall be gone."""

    key: Any
    name: str


@final
class ResetHost(Struct):
    """The virtual host shall be as empty as a new one."""

    key: Any


@final
class ReportDamage(Struct):
    """A message's bytes failed their CRC: set its entry aside."""

    queue: int
    word: int


@final
class RecordCompaction(Struct):
    """A compaction was committed: say so in the log, and answer once that is durable."""

    key: Any
    horizon: int
    segments: tuple[int, int]
    """Those that were replaced, and those that took their place; as the next two."""
    records: tuple[int, int]
    sizes: tuple[int, int]
    """In bytes."""


@final
class NameSnapshot(Struct):
    """The snapshot of a past moment that a job has written shall be one of the log's; answered with its attributes."""

    key: Any
    job: str
    """Names the directory that it lies in."""
    name: str


@final
class CommitCompaction(Struct):
    """What a compaction's job has written shall take the place of what it was made from (compactor.py)."""

    key: Any
    job: str
    """Names the directory that it lies in."""


@final
class Inspect(Struct):
    """Answer `key` with what `read` sees in the state, once everything that it saw is durable."""

    key: Any
    read: Callable[[State], Any]


@final
class ExplainRoute(Struct):
    """Answer `key` with what `read` makes of the way that a message would go (explaining.py); nothing is published."""

    key: Any
    address: str
    """Empty: the message's own `to`."""
    body: Buffer
    """The message, as far as matching asks for it."""
    read: Callable[[State, Any], Any]
    """State and Explained -> the answer."""


@final
class TakeSnapshot(Struct):
    """A snapshot of the state at the end of this tick; answered with its attributes once it is there for good."""

    key: Any
    name: str = ""
    """Empty: the broker finds one."""
    waits: bool = True
    """False: answered once it is taken, before it is written."""
    seals: bool = False
    """The log goes on in its next segment where that lies ready: what is below the snapshot is whole segments then."""


@final
class DeleteSnapshot(Struct):
    """A snapshot shall be gone; answered with its attributes, None where there is none of that name."""

    key: Any
    name: str


@final
class InspectSnapshots(Struct):
    """Answer `key` with what `read` makes of the attributes of all snapshots, in order of their ends.

    `read` is told too how many more may be asked for.
    """

    key: Any
    read: Callable[[Sequence[Mapping[str, Any]], int], Any]


CompactionCommand = CommitCompaction | NameSnapshot
"""What a compaction's job asks for (compactor.py): files too."""

SnapshotCommand = TakeSnapshot | DeleteSnapshot | InspectSnapshots
"""What is asked of the snapshots (snapshotter.py): files beside the state, so nothing is decided about it."""

Command = (
    Publish
    | Settle
    | AttachProducer
    | DetachProducer
    | AttachConsumer
    | DetachConsumer
    | DeclareQueue
    | UpdateQueue
    | DeleteQueue
    | DeleteSubscription
    | DeclareMuxer
    | UpdateMuxer
    | DeleteMuxer
    | EndLinks
    | EndNodes
    | AttachMember
    | DetachMember
    | PurgeQueue
    | ResetHost
    | ReportDamage
    | RecordCompaction
    | CompactionCommand
    | Inspect
    | ExplainRoute
    | SnapshotCommand
)
