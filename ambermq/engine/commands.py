"""The commands of the engine. A command is decided once: it gives events and effects, or a refusal.

`key` and `link` are opaque to the engine. The effects that answer the command carry them.
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
from ambermq.engine.model.subscription import Subscription, SubscriptionRequest
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
    "SignedCommand",
    "SnapshotCommand",
    "TakeSnapshot",
    "UpdateMuxer",
    "UpdateQueue",
]


class SignedCommand(Struct, kw_only=True):
    """A command whose events name the user that asked for it."""

    by: str = ""
    """The user; empty if none is known."""


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

    def join(self, other: "Publish", *, bytes_max: int) -> bool:
        """Append the next run if it is alike and both fit into `bytes_max`; return whether it did."""
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
        """Return the first `count` messages and the other messages as two runs."""
        return self.part(0, count), self.part(count, len(self.bodies))

    def part(self, start: int, end: int) -> "Publish":
        """Return the messages from index `start` up to `end` as a run."""
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
            self.may_create,
            self.by,
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
class AttachProducer(SignedCommand):
    """Attach a producer to an address; if `address` is empty, each message names its own."""

    key: Any
    address: str
    container: str
    link: str
    unroutable: Unroutable = Unroutable.RELEASE
    is_immediate: bool = False
    dynamic: Dynamic | None = None
    """It sends to a new dynamic node; `address` is not used."""
    may_create: bool = True
    """Whether it may create the queue at its address."""
    must_exist: bool = False
    """Whether it wants only what exists: what it would create is refused with amqp:not-found."""


@final
class DetachProducer(SignedCommand):
    """Detach a producer."""

    producer: int
    keeps_node: bool = False
    """True: the node that it created does not count as closed yet; EndNodes ends it later."""


@final
class AttachConsumer(SignedCommand):
    """Attach a consumer to an address."""

    key: Any
    address: str
    container: str
    link: str
    settled: bool = False
    """Deliveries are sent settled: they count as accepted when they are acquired."""
    selector: str = ""
    """The text of its selector, empty for none."""
    subscription_request: SubscriptionRequest = SubscriptionRequest()
    """How it subscribes if the address names a topic."""
    dynamic: Dynamic | None = None
    """It receives from a new dynamic node; `address` is not used."""
    is_recalled: bool = False
    """It attaches without a source to the durable subscription of its name; `address` is not used."""
    may_create: bool = True
    """Whether it may create the queue at its address, or a durable subscription."""
    user: str = ""
    """The owner of a subscription that it makes, empty for none."""
    authorize: Callable[[Subscription], None] | None = None
    """Raises Refused if it may not attach to a subscription that exists."""
    must_exist: bool = False
    """Whether it wants only what exists: a queue or a durable subscription that it would create is refused."""


@final
class DetachConsumer(SignedCommand):
    """Detach a consumer. `unsent` are acquired words that were never sent: they return without a failed delivery."""

    consumer: int
    unsent: bytes = b""
    is_closed: bool = False
    """True: a durable subscription ends with it. False: the link may come back."""
    keeps_node: bool = False
    """True: the node that it created does not count as closed yet; EndNodes ends it later."""
    is_uncounted: bool = False
    """True: everything that it holds returns without a failed delivery: the broker ends the link."""


@final
class DeclareQueue(SignedCommand):
    """Declare a queue. The same declaration again changes nothing; with other settings it is refused."""

    key: Any
    name: str
    settings: Settings


@final
class UpdateQueue(SignedCommand):
    """Change settings of a queue. A setting that is None stays.

    The answer leaves when the change is durable. It is the map that `read` returns for the state after the change, with
    `updated`: whether anything changed.
    """

    key: Any
    name: str
    read: Callable[[State], Any]
    messages_max: int | None = None
    template: str | None = None
    """The template of the queue; another one is refused."""


@final
class DeleteQueue(SignedCommand):
    """Delete a queue."""

    key: Any
    name: str
    if_unused: bool = False
    if_empty: bool = False


@final
class DeleteSubscription(SignedCommand):
    """Delete a subscription, by its name or by the name of its queue."""

    key: Any
    name: str
    container: str | None = None
    """The container of the subscription; None: not given."""
    force: bool = False
    """True: its receivers are ended. False: a subscription with receivers is refused."""
    authorize: Callable[[Subscription], None] | None = None
    """Raises Refused if the request may not delete the subscription that it names."""


@final
class DeclareMuxer(SignedCommand):
    """Declare a muxer. The same declaration again changes nothing; with other options it is refused."""

    key: Any
    name: str
    kind: MuxerKind
    options: Options = Options()


@final
class UpdateMuxer(SignedCommand):
    """Change options of a muxer, in the same way as UpdateQueue."""

    key: Any
    name: str
    read: Callable[[State], Any]
    probability: float | None = None
    seed: int | None = None
    kind: MuxerKind | None = None
    """The class of the muxer; another one is refused."""
    separator: str | None = None
    """The separator of the muxer; another one is refused."""


@final
class DeleteMuxer(SignedCommand):
    """Delete a muxer, with its attachments in both directions."""

    key: Any
    name: str
    if_unused: bool = False
    """Refuse it if a producer or a muxer sends to it."""
    if_empty: bool = False
    """Refuse it if it has attachments."""


@final
class EndNodes(SignedCommand):
    """End those of `nodes` whose end has come.

    It is the rest of a command with many changes (engine/decide/end_nodes.py), or the late end of a dynamic node.
    """

    nodes: tuple[int, ...]
    closed: tuple[int, ...]
    """Nodes whose creating link has ended."""
    deleted: tuple[int, ...]
    """Nodes to delete in any case."""
    then: tuple[Effect, ...]
    """The effects that leave when every node has ended."""


@final
class EndLinks(Struct):
    """Send the ends of links that are not in the state any more: the rest of a command that ended many.

    Only the engine creates it (engine/decide/end_nodes.py).
    """

    consumers: tuple[int, ...]
    producers: tuple[int, ...]
    why: tuple[str, str]
    """The condition and the description of the error."""
    then: tuple[Effect, ...]
    """The effects that leave after the others."""


@final
class AttachMember(SignedCommand):
    """Attach a member to a muxer: a queue, or a muxer as `muxer:NAME`."""

    key: Any
    muxer: str
    member: str
    argument: Argument = None
    argument_name: str = ""
    """The key that gave the argument, one of ARGUMENT_NAMES (attachment_arguments.py); empty: not given."""


@final
class DetachMember(SignedCommand):
    """Remove the attachment of a member to a muxer by this argument."""

    key: Any
    muxer: str
    member: str
    argument: Argument = None
    argument_name: str = ""
    """The key that gave the argument, one of ARGUMENT_NAMES (attachment_arguments.py); empty: not given."""
    attachment: int = 0
    """If not 0, the id of the attachment, instead of member and argument. The member may be gone."""


@final
class PurgeQueue(SignedCommand):
    """Remove all available messages of a queue."""

    key: Any
    name: str


@final
class ResetHost(SignedCommand):
    """Remove all queues, wiring and links of the virtual host."""

    key: Any


@final
class ReportDamage(Struct):
    """Remove the entry of a message whose bytes do not match their CRC."""

    queue: int
    word: int


@final
class RecordCompaction(Struct):
    """Record a committed compaction in the log. The answer leaves when the record is durable."""

    key: Any
    horizon: int
    segments: tuple[int, int]
    """The counts of replaced and of new segments."""
    records: tuple[int, int]
    """The counts of records before and after."""
    sizes: tuple[int, int]
    """The bytes of the segments before and after."""


@final
class NameSnapshot(Struct):
    """Add the snapshot of a past moment, which a job has written, to the log. The answer has its attributes."""

    key: Any
    job: str
    """The name of the job's directory."""
    name: str


@final
class CommitCompaction(Struct):
    """Replace segments by those that a compaction job has written (engine/compaction/commit.py)."""

    key: Any
    job: str
    """The name of the job's directory."""


@final
class Inspect(Struct):
    """Answer with the result of `read` on the state, when that state is durable."""

    key: Any
    read: Callable[[State], Any]


@final
class ExplainRoute(Struct):
    """Answer with the result of `read` on the route of a message (engine/decide/explain_route.py); publish nothing."""

    key: Any
    address: str
    """The address; empty: the address in the message's `to`."""
    body: Buffer
    """The message; only the fields that matching reads are needed."""
    read: Callable[[State, Any], Any]
    """A function from the state and the Explained to the answer."""


@final
class TakeSnapshot(Struct):
    """Take a snapshot of the state at the end of this tick. The answer has its attributes."""

    key: Any
    name: str = ""
    """The name; empty: the broker chooses one."""
    waits: bool = True
    """True: the answer leaves when the snapshot is durable. False: when it is taken, before it is written."""
    seals: bool = False
    """Seal the active segment if the spare is ready, so that whole segments are below the snapshot."""


@final
class DeleteSnapshot(Struct):
    """Delete a snapshot. The answer has its attributes, or is None if no snapshot has the name."""

    key: Any
    name: str


@final
class InspectSnapshots(Struct):
    """Answer with the result of `read` on the attributes of all snapshots, in order of their ends.

    The second argument of `read` is the number of snapshots that may still be requested.
    """

    key: Any
    read: Callable[[Sequence[Mapping[str, Any]], int], Any]


CompactionCommand = CommitCompaction | NameSnapshot
"""The commands of a compaction job (engine/compaction): they concern files too."""

SnapshotCommand = TakeSnapshot | DeleteSnapshot | InspectSnapshots
"""The commands on snapshots (engine/snapshots/snapshotter.py): they concern files, so `decide` does not get them."""

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
