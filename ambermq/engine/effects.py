"""What leaves the engine. Effects are data; the gateway carries them out.

Rule 1. Only effects wait, never decisions: an effect may leave when everything below its `after` is durable.
Rule 2. `after` is AT_CLOSE until the tick closes, then the log end of that close: an answer promises whatever it was
        decided upon, even where it wrote nothing itself.
Rule 3. NOW waits for the write alone.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, final

from msgspec import Struct

from ambermq.engine.model.entry import Entry
from ambermq.engine.model.outcome import OutcomeKind
from ambermq.engine.model.subscription import Subscription
from ambermq.log.buffer import Buffer

if TYPE_CHECKING:
    from ambermq.engine.selectors.selector import Selector

__all__ = [
    "AT_CLOSE",
    "NOW",
    "Answered",
    "CommandFailed",
    "ConsumerEnded",
    "ConsumerReady",
    "Deliver",
    "Drained",
    "Effect",
    "OutcomeApplied",
    "ProducerReady",
    "ProducersEnded",
    "PublishDone",
    "RefusedCommand",
    "Unfinished",
]

NOW = 0
AT_CLOSE = -1


@final
class PublishDone(Struct):
    """The outcome of a run of messages, for their sender."""

    link: Any
    first_id: int
    count: int
    kind: OutcomeKind
    settled: bool
    """The sender settled them itself: nothing is sent, they only count as finished."""
    condition: str = ""
    description: str = ""
    after: int = AT_CLOSE


@final
class Deliver(Struct):
    """A run of deliveries to one consumer, in order."""

    consumer: int
    link: Any
    queue: int
    words: tuple[int, ...]
    entries: Sequence[Entry | None] | None
    """The columns of each, None when none has any."""
    settled: bool = False
    after: int = AT_CLOSE
    bodies: Sequence[Buffer] = ()
    """The messages, filled in when the effect leaves."""
    cancelled: bool = False
    """The consumer is gone and the words went back: nothing may be sent."""


@final
class OutcomeApplied(Struct):
    """A consumer's outcome is on disk; `reply` is as it was given."""

    reply: Any
    after: int = AT_CLOSE


@final
class ProducerReady(Struct):
    """A producer exists."""

    key: Any
    producer: int
    after: int = AT_CLOSE
    address: str = ""
    """Of the node that was made for it."""


@final
class ConsumerReady(Struct):
    """A consumer exists; it has no credit yet."""

    key: Any
    consumer: int
    after: int = AT_CLOSE
    address: str = ""
    """Of the node that was made for it."""
    subscription: Subscription | None = None
    """What it receives from, where that is one."""
    selector: "Selector | None" = None
    """What it takes of a queue, None for everything."""


@final
class Answered(Struct):
    """The answer to a command about wiring."""

    key: Any
    value: Any
    after: int = AT_CLOSE


@final
class RefusedCommand(Struct):
    """A command was refused, nothing changed."""

    key: Any
    condition: str
    description: str
    after: int = NOW


@final
class CommandFailed(Struct):
    """A command met a mistake of ours: nothing of it happened, and the connection that it came from ends."""

    command: Any
    error: Exception
    after: int = NOW


@final
class ConsumerEnded(Struct):
    """The engine ends a consumer: its queue is gone."""

    consumer: int
    condition: str
    description: str
    after: int = AT_CLOSE


@final
class ProducersEnded(Struct):
    """The engine ends producers: what they sent to is gone."""

    producers: frozenset[int]
    condition: str
    description: str
    after: int = AT_CLOSE


@final
class Drained(Struct):
    """Nothing more is available for a consumer that asked to be drained."""

    consumer: int
    link: Any
    after: int = NOW


@final
class Unfinished(Struct):
    """The rest of a command that is decided in parts; it stands last, never leaves, and is decided next of all."""

    command: Any
    after: int = NOW


Effect = (
    PublishDone
    | Deliver
    | OutcomeApplied
    | ProducerReady
    | ConsumerReady
    | Answered
    | RefusedCommand
    | CommandFailed
    | ConsumerEnded
    | ProducersEnded
    | Drained
    | Unfinished
)
