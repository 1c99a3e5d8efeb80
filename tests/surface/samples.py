"""One event of each type, or a few, that say all that an event of that type can say."""

from typing import Final

from engine.attachment import Condition
from engine.events import (
    Acquired,
    Attached,
    Chunked,
    Compacted,
    ConsumerAttached,
    ConsumerDetached,
    Damaged,
    Detached,
    Drawn,
    Event,
    Lost,
    MuxerDeclared,
    MuxerDeleted,
    MuxerUpdated,
    ProducerAttached,
    ProducerDetached,
    Published,
    Purged,
    QueueDeclared,
    QueueDeleted,
    QueueUpdated,
    Reset,
    Settled,
    Started,
    Subscribed,
)
from engine.lifetime import Lifetime
from engine.mode import Mode
from engine.muxer import MuxerKind, Options
from engine.outcome import Outcome, OutcomeKind
from engine.queue import Settings
from engine.sending import Sending, Unroutable
from engine.subscription import Subscription

__all__ = ["MUXER", "QUEUE", "SAMPLES"]

QUEUE: Final = 2
"""The id of the one queue whose name is known."""
MUXER: Final = 1
_WORD: Final = bytes(8)
_OPTIONS: Final = Options(separator="/", probability=0.5, seed=7, lifetime=Lifetime.ON_CLOSE)
_SUBSCRIPTION: Final = Subscription("topic", "name", "container", True, True, "a = 1", True)
_REJECTED: Final = Outcome(OutcomeKind.REJECTED, condition="a:condition", description="why")
_MODIFIED: Final = Outcome(OutcomeKind.MODIFIED, True, True)

SAMPLES: Final[tuple[Event, ...]] = (
    Started(0, 0, 1, Mode.ADVANCED),
    QueueDeclared(QUEUE, 0, "queue", Settings(), Lifetime.ON_CLOSE),
    QueueUpdated(3, 0, QUEUE, Settings()),
    QueueDeleted(3, 0, QUEUE),
    MuxerDeclared(MUXER, 0, "muxer", MuxerKind.LOSSY, _OPTIONS),
    MuxerUpdated(3, 0, MUXER, _OPTIONS),
    MuxerDeleted(3, 0, MUXER),
    Attached(3, 0, MUXER, QUEUE, (Condition("a", True, 1),)),
    Detached(4, 0, MUXER, QUEUE, 3, "destination"),
    Drawn(3, 0, MUXER, 1),
    ProducerAttached(3, 0, MUXER, "to", "container", "link", Sending(Unroutable.REJECT, True, True), QUEUE, QUEUE),
    ProducerDetached(4, 0, 3),
    ConsumerAttached(3, 0, QUEUE, "container", "link", "a = 1", QUEUE),
    ConsumerDetached(4, 0, 3),
    Chunked(4, 0, 3, b""),
    Published(5, 0, (QUEUE,), 3, _WORD, 1, True, (4,)),
    Acquired(6, 0, QUEUE, (3,), _WORD),
    Settled(7, 0, QUEUE, 3, _REJECTED, _WORD),
    Settled(7, 0, QUEUE, 3, _MODIFIED, _WORD),
    Purged(8, 0, QUEUE, 5),
    Damaged(8, 0, QUEUE, _WORD),
    Lost(9, 0, 1, 2),
    Reset(9, 0),
    Compacted(9, 0, 1, 2, 1, 9, 5, 900, 500),
    Subscribed(9, 0, QUEUE, _SUBSCRIPTION),
)
