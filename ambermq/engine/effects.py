"""The effects of the engine. They are values; the gateway carries them out.

Rule 1. Only effects wait, never decisions. An effect may leave when everything below its `after` is durable.
Rule 2. `after` is AT_CLOSE until the tick closes, then the log end at that time. An answer promises the state that it
        was decided on, even if its command wrote nothing.
Rule 3. NOW waits only for the write.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, final

from msgspec import Struct

from ambermq.engine.entries.entry import Entry
from ambermq.engine.entries.outcome import OutcomeKind
from ambermq.engine.entries.stored_message import StoredMessage
from ambermq.engine.model.subscription import Subscription
from ambermq.log.buffer import Buffer

if TYPE_CHECKING:
    from ambermq.engine.selectors.selector import Selector

__all__ = [
    "AT_CLOSE",
    "NOW",
    "ActiveChanged",
    "Answered",
    "ChunkStored",
    "CommandFailed",
    "ConsumerEnded",
    "ConsumerReady",
    "CutThroughBegun",
    "CutThroughEnded",
    "Deliver",
    "Drained",
    "Effect",
    "LocksExpired",
    "OutcomeApplied",
    "Posted",
    "ProducerReady",
    "ProducersEnded",
    "PublishDone",
    "QueueBlocked",
    "RefusedCommand",
    "Unfinished",
]

NOW = 0
AT_CLOSE = -1


@final
class PublishDone(Struct):
    """The outcome of a run of messages, for their producer."""

    link: Any
    first_id: int
    count: int
    kind: OutcomeKind
    settled: bool
    """The sender has settled them: no outcome is sent, they only count as done."""
    condition: str = ""
    description: str = ""
    after: int = AT_CLOSE
    is_queue_full: bool = False
    """Whether they were rejected because a queue has its maximum length."""
    is_misaddressed: bool = False
    """The address in `to` does not exist: a link to it would be refused."""
    transaction: Any = None
    """The Transaction that the messages belong to; None for none."""
    offset: int = 0
    """The offset of the first message, if they were scheduled, expire or have another priority; else 0."""


@final
class ChunkStored(Struct):
    """A piece of a large message is durable, or refused."""

    link: Any
    upload: Any
    """The Upload."""
    size: int
    """The bytes of the piece."""
    condition: str = ""
    """The condition of the refusal; empty if the piece is stored."""
    description: str = ""
    after: int = AT_CLOSE


@final
class Posted(Struct):
    """A transaction takes a run of messages, whose PublishDone follows. The loop holds it; it never leaves."""

    post: Any
    """The Post."""
    after: int = NOW


@final
class Deliver(Struct):
    """A run of deliveries to one consumer, in order."""

    consumer: int
    link: Any
    queue: int
    words: tuple[int, ...]
    entries: Sequence[Entry | None] | None
    """The columns of each entry; None if no entry has any."""
    settled: bool = False
    after: int = AT_CLOSE
    bodies: Sequence[Buffer | StoredMessage] = ()
    """The messages, set when the effect leaves. Large ones are read piece by piece."""
    cancelled: bool = False
    """The consumer ended and its words are available again: nothing may be sent."""
    elapsed_us: int = 0
    """The elapsed time of the dispatch, for the times to live of `entries`."""
    lock_ms: int = 0
    """How long the consumer holds the messages without settling them; 0: for ever."""
    locked_until_ms: int = 0
    """When their locks expire, in milliseconds since 1970, set when the effect leaves; 0: never."""
    is_resumed: bool = False
    """Whether the peer has had these deliveries on the link before, and has resumed it."""


@final
class CutThroughBegun(Struct):
    """The delivery of a message begins whose last piece has not arrived. Its pieces that are durable may be sent."""

    consumer: int
    link: Any
    cut_through: Any
    """The CutThrough."""
    after: int = AT_CLOSE


@final
class CutThroughEnded(Struct):
    """The message of a delivery that has begun is published, or it will not be: then the delivery is aborted."""

    consumer: int
    link: Any
    cut_through: Any
    """The CutThrough."""
    word: int = 0
    """The word of the message, which its consumer holds; 0 for none."""
    after: int = NOW


@final
class LocksExpired(Struct):
    """The locks of deliveries have expired: the messages are on their queue again, and no outcome changes that.

    It overtakes other effects, so that no outcome that comes later is taken for one of a new delivery.
    """

    consumer: int
    words: bytes
    after: int = NOW


@final
class OutcomeApplied(Struct):
    """A consumer's outcome is durable; `reply` is that of the command Settle, None if there is nothing to answer."""

    reply: Any
    after: int = AT_CLOSE
    consumer: int = 0
    """The consumer, if the messages return to their queue: what it gets later waits for this effect.

    A delivery-tag names an entry: the receiver must hear that it is settled before it comes again. 0: nothing returns.
    """


@final
class ProducerReady(Struct):
    """A producer is attached."""

    key: Any
    producer: int
    after: int = AT_CLOSE
    address: str = ""
    """The address of its dynamic node."""
    created: str = ""
    """The queue that was created at its address, empty if it existed."""
    message_bytes_max: int = 0
    """The largest message that the queue at its address takes; 0: no limit of its own."""
    queue: str = ""
    """The queue that its address names; empty if it sends to a muxer or topic, or to no address."""
    kept: tuple[bytes, ...] = ()
    """The kept delivery-tags of the link that it resumes."""


@final
class ConsumerReady(Struct):
    """A consumer is attached; it has no credit yet."""

    key: Any
    consumer: int
    after: int = AT_CLOSE
    address: str = ""
    """The address of its dynamic node."""
    subscription: Subscription | None = None
    """The subscription that it receives from, None for a plain queue."""
    selector: "Selector | None" = None
    """Its selector on the queue, None for none."""
    created: str = ""
    """The queue that was created at its address, empty if it existed."""
    follows: int = 0
    """The queue if it is non-destructive: the link reads its messages, and the engine delivers none; else 0."""
    held: tuple[int, ...] = ()
    """The keys of what the link held when it was resumed; its peer may have settled some of it since."""


@final
class Answered(Struct):
    """The answer to a command with a key."""

    key: Any
    value: Any
    after: int = AT_CLOSE


@final
class RefusedCommand(Struct):
    """A command was refused; nothing changed."""

    key: Any
    condition: str
    description: str
    after: int = NOW


@final
class CommandFailed(Struct):
    """A command failed by a defect of AmberMQ: nothing of it happened, and its connection ends."""

    command: Any
    error: Exception
    after: int = NOW


@final
class ConsumerEnded(Struct):
    """The engine ended a consumer, because its queue was deleted or another link stole its subscription."""

    consumer: int
    condition: str
    description: str
    after: int = AT_CLOSE


@final
class ProducersEnded(Struct):
    """The engine ended producers, because their target was deleted."""

    producers: frozenset[int]
    condition: str
    description: str
    after: int = AT_CLOSE


@final
class ActiveChanged(Struct):
    """A consumer of an exclusive queue became the active one, or is not the active one."""

    consumer: int
    link: Any
    is_active: bool
    after: int = AT_CLOSE


@final
class QueueBlocked(Struct):
    """A queue with the policy `block` is full, or has room again."""

    queue: str
    """Its name."""
    is_blocked: bool
    after: int = NOW


@final
class Drained(Struct):
    """No message is available for a draining consumer."""

    consumer: int
    link: Any
    after: int = NOW


@final
class Unfinished(Struct):
    """The rest of a command that is decided in parts. It is the last effect, never leaves, and is decided next."""

    command: Any
    after: int = NOW


Effect = (
    PublishDone
    | Deliver
    | ChunkStored
    | CutThroughBegun
    | CutThroughEnded
    | LocksExpired
    | OutcomeApplied
    | ProducerReady
    | ConsumerReady
    | Answered
    | RefusedCommand
    | CommandFailed
    | ConsumerEnded
    | ProducersEnded
    | Drained
    | Posted
    | ActiveChanged
    | QueueBlocked
    | Unfinished
)
