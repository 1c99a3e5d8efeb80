"""The state of a virtual host: the fold of its log. One immutable value; equal on every replay."""

from dataclasses import dataclass
from typing import final

from msgspec import Struct
from msgspec.structs import replace

from ambermq.engine.model.muxer import Muxer
from ambermq.engine.model.publish_options import DEFAULT_PUBLISH_OPTIONS, PublishOptions
from ambermq.engine.model.queue import Queue
from ambermq.engine.model.subscription import Key, Subscription
from ambermq.engine.model.vhost_mode import VhostMode
from ambermq.snapshot.persistent_map import PersistentMap

__all__ = ["EMPTY_STATE", "Consumer", "Links", "Producer", "State", "totals_of"]

Links = PersistentMap[int, None]
"""The ids of producers or consumers: what leads to one thing, so that it is not looked for among all."""


@final
@dataclass(frozen=True, slots=True)
class Consumer:
    """A link on which a peer receives."""

    id: int
    """The offset of the record that attached it."""
    queue: int
    container: str
    link: str
    selector: str = ""
    """What it takes of a queue, empty for everything."""
    owns: int = 0
    """The queue or muxer that it had made, 0 for none."""


@final
@dataclass(frozen=True, slots=True)
class Producer:
    """A link on which a peer sends."""

    id: int
    """The offset of the record that attached it."""
    muxer: int
    """Where it sends to; 0 for the address that each message names."""
    destination: str
    """What its messages are for; empty where each of them says it."""
    container: str
    link: str
    sending: PublishOptions = DEFAULT_PUBLISH_OPTIONS
    node: int = 0
    """The queue or muxer with an end that it sends to, 0 for others."""
    owns: int = 0
    """The one that it had made, 0 for none."""

    @property
    def nodes(self) -> tuple[int, ...]:
        """What its link is one of: the muxer, and the queue with an end."""
        return tuple({self.muxer, self.node} - {0})


@final
class State(Struct, frozen=True):
    """Everything that the log says is so; immutable."""

    epoch: int
    """Starts of the broker so far."""
    time_us: int
    """The time of the last event; the engine's clock never runs behind it."""
    queues: "PersistentMap[int, Queue]"
    queue_names: "PersistentMap[str, int]"
    muxers: "PersistentMap[int, Muxer]"
    muxer_names: "PersistentMap[str, int]"
    consumers: "PersistentMap[int, Consumer]"
    producers: "PersistentMap[int, Producer]"
    draws: "PersistentMap[int, int]"
    """LOSSY muxers to how many messages they have drawn for."""
    subscriptions: "PersistentMap[int, Subscription]"
    """By the queues that hold their messages."""
    subscription_queues: "PersistentMap[Key, int]"
    no_locals: "PersistentMap[int, str]"
    """Queues of subscriptions to the container whose messages do not come there."""
    links: "PersistentMap[int, Links]"
    """Muxers, and queues with an end, to the producers that send to them."""
    receivers: "PersistentMap[int, Links]"
    """Queues to their consumers."""
    mode: VhostMode = VhostMode.AUTOMATIC

    def with_queue(self, queue: Queue, time_us: int) -> "State":
        """Return the state with another version of one queue."""
        return replace(self, time_us=time_us, queues=self.queues.set(queue.id, queue))

    def with_fields(self, **changes: object) -> "State":
        """Return the state with some fields replaced."""
        return replace(self, **changes)

    def queue_named(self, name: str) -> Queue | None:
        """Return a queue by its name, None when there is none."""
        queue_id = self.queue_names.get(name)
        return None if queue_id is None else self.queues[queue_id]

    def muxer_named(self, name: str) -> Muxer | None:
        """Return a muxer by its name, None when there is none."""
        muxer_id = self.muxer_names.get(name)
        return None if muxer_id is None else self.muxers[muxer_id]


def totals_of(state: State) -> dict[str, int]:
    """Return how many `queues` there are, and their `messages` and `bytes`."""
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
