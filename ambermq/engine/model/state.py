"""The state of a virtual host: the fold of its log. One immutable value; equal on every replay."""

from dataclasses import dataclass
from typing import Final, final

from msgspec import Struct
from msgspec.structs import replace

from ambermq.engine.model.muxer import Muxer
from ambermq.engine.model.publish_options import DEFAULT_PUBLISH_OPTIONS, PublishOptions
from ambermq.engine.model.queue import Queue
from ambermq.engine.model.subscription import Key, Subscription
from ambermq.engine.model.suspended_link import KEEPS_NOTHING, Keeping, LinkKey, SuspendedLink
from ambermq.engine.model.vhost_mode import VhostMode
from ambermq.snapshot.persistent_map import PersistentMap
from ambermq.snapshot.persistent_queue import PersistentQueue

__all__ = ["EMPTY_STATE", "Consumer", "Links", "Producer", "State", "Tags", "totals_of"]

_NO_QUEUES: "PersistentMap[int, None]" = PersistentMap()
Tags = PersistentMap[bytes, None]
"""The delivery-tags of one producer whose messages are stored, and which the sender has not settled."""
_NO_UPLOADS: "Final[PersistentMap[int, PersistentQueue]]" = PersistentMap()

Links = PersistentMap[int, None]
"""The ids of the producers or consumers of one node. So the links of a node are found without a scan of all links."""


@final
@dataclass(frozen=True, slots=True)
class Consumer:
    """A link on which a peer receives."""

    id: int
    """The offset of the event ConsumerAttached."""
    queue: int
    container: str
    link: str
    selector: str = ""
    """The text of its selector, empty for none."""
    owns: int = 0
    """The dynamic queue or muxer that was created for it, 0 for none."""
    is_exclusive: bool = False
    """Whether its queue takes no other consumer while it is there."""
    user: str = ""
    """The user of its connection; empty if none is known."""
    keeping: Keeping = KEEPS_NOTHING
    """How it keeps its unsettled deliveries."""


@final
@dataclass(frozen=True, slots=True)
class Producer:
    """A link on which a peer sends."""

    id: int
    """The offset of the event ProducerAttached."""
    muxer: int
    """The muxer that it sends to; 0 if each message names its address."""
    destination: str
    """The destination of its messages; empty if each message names its own."""
    container: str
    link: str
    sending: PublishOptions = DEFAULT_PUBLISH_OPTIONS
    node: int = 0
    """The queue or muxer that it sends to, if that has a lifetime policy; else 0."""
    owns: int = 0
    """The dynamic queue or muxer that was created for it, 0 for none."""
    user: str = ""
    """The user of its connection; empty if none is known."""
    keeping: Keeping = KEEPS_NOTHING
    """How it keeps the delivery-tags that its peer has not settled."""

    @property
    def nodes(self) -> tuple[int, ...]:
        """The nodes that count its link: its muxer, and its queue if that has a lifetime policy."""
        return tuple({self.muxer, self.node} - {0})


@final
class State(Struct, frozen=True):
    """The state of a virtual host after an event of its log; immutable."""

    epoch: int
    """The number of starts of the broker."""
    time_us: int
    """The time of the last event. The engine's clock is never before it."""
    queues: "PersistentMap[int, Queue]"
    queue_names: "PersistentMap[str, int]"
    muxers: "PersistentMap[int, Muxer]"
    muxer_names: "PersistentMap[str, int]"
    consumers: "PersistentMap[int, Consumer]"
    producers: "PersistentMap[int, Producer]"
    draws: "PersistentMap[int, int]"
    """The number of draws of each LOSSY muxer."""
    subscriptions: "PersistentMap[int, Subscription]"
    """By the id of the queue that holds their messages."""
    subscription_queues: "PersistentMap[Key, int]"
    no_locals: "PersistentMap[int, str]"
    """For the queue of a no-local subscription: the container whose messages it does not get."""
    links: "PersistentMap[int, Links]"
    """Producers by the muxer, or by the queue with a lifetime policy, that they send to."""
    receivers: "PersistentMap[int, Links]"
    """Consumers by queue."""
    mode: VhostMode = VhostMode.AUTOMATIC
    stepped_us: int = 0
    """The sum of all steps of the clock."""
    deduplicating: "PersistentMap[int, None]" = _NO_QUEUES
    """The queues with a dedup window: derived from their settings, so that a route without one costs one look."""
    suspended: "PersistentMap[int, SuspendedLink]" = PersistentMap()
    """The links that their peers may resume."""
    suspended_ids: "PersistentMap[LinkKey, int]" = PersistentMap()
    """The newest suspended link of each key."""
    suspended_held: int = 0
    """The deliveries and tags of all of them, as they were when they were suspended."""
    tags: "PersistentMap[int, Tags]" = PersistentMap()
    """The kept delivery-tags by producer, or by the suspended link that it was."""
    uploads: "PersistentMap[int, PersistentQueue]" = _NO_UPLOADS
    """The chunk records of messages that arrive piece by piece: words by the offset of the first one."""
    outcome_annotations_bytes: int = 0
    """The bytes of what outcomes have added to messages: the sum over the queues, so that a decision finds it."""

    def elapsed_us(self, time_us: int) -> int:
        """Return the elapsed time at the time of an event: timers go by it, since no step of the clock changes it."""
        return time_us - self.stepped_us

    def with_queue(self, queue: Queue, time_us: int) -> "State":
        """Return the state with another version of one queue."""
        before = self.queues.get(queue.id)
        annotations_bytes = self.outcome_annotations_bytes + queue.outcome_annotations.size
        annotations_bytes -= 0 if before is None else before.outcome_annotations.size
        queues = self.queues.set(queue.id, queue)
        return replace(self, time_us=time_us, queues=queues, outcome_annotations_bytes=annotations_bytes)

    def with_fields(self, **changes: object) -> "State":
        """Return the state with some fields replaced."""
        return replace(self, **changes)

    def without_upload(self, upload: int) -> "State":
        """Return the state without the chunk records of a message, which is published or has ended."""
        return replace(self, uploads=self.uploads.delete(upload)) if upload in self.uploads else self

    def suspended_count(self, queue: Queue) -> int:
        """Return how many messages of a queue suspended links hold."""
        known = self.suspended
        return sum([held.count for holder, held in queue.acquired.items() if holder in known]) if known else 0

    def queue_named(self, name: str) -> Queue | None:
        """Return a queue by its name, None when there is none."""
        queue_id = self.queue_names.get(name)
        return None if queue_id is None else self.queues[queue_id]

    def muxer_named(self, name: str) -> Muxer | None:
        """Return a muxer by its name, None when there is none."""
        muxer_id = self.muxer_names.get(name)
        return None if muxer_id is None else self.muxers[muxer_id]


def totals_of(state: State) -> dict[str, int]:
    """Return the number of `queues`, and the sum of their `messages` and `bytes`."""
    queues = state.queues.values()
    return {
        "queues": len(queues),
        "messages": sum(queue.depth for queue in queues),
        "bytes": sum(queue.size for queue in queues),
    }


EMPTY_STATE = State(
    0,
    0,
    PersistentMap(),
    PersistentMap(),
    PersistentMap(),
    PersistentMap(),
    PersistentMap(),
    PersistentMap(),
    PersistentMap(),
    PersistentMap(),
    PersistentMap(),
    PersistentMap(),
    PersistentMap(),
    PersistentMap(),
)
