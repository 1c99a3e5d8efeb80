"""One event of each type, or a few, that say all that an event of that type can say."""

from typing import Final

from ambermq.engine.events import (
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
from ambermq.engine.model.attachment import Condition
from ambermq.engine.model.lifetime import Lifetime
from ambermq.engine.model.muxer import MuxerKind, Options
from ambermq.engine.model.outcome import Outcome, OutcomeKind
from ambermq.engine.model.publish_options import PublishOptions, Unroutable
from ambermq.engine.model.queue import Settings
from ambermq.engine.model.subscription import Subscription
from ambermq.engine.model.vhost_mode import VhostMode

__all__ = ["MUXER", "QUEUE", "SAMPLES"]

QUEUE: Final = 2
"""The id of the one queue whose name is known."""
MUXER: Final = 1
_WORD: Final = bytes(8)
_MUXER_OPTIONS: Final = Options(separator="/", probability=0.5, seed=7, lifetime=Lifetime.ON_CLOSE)
_SUBSCRIPTION: Final = Subscription("topic", "name", "container", True, True, "a = 1", True)
_PUBLISH_OPTIONS: Final = PublishOptions(Unroutable.REJECT, True, True)
_REJECTED: Final = Outcome(OutcomeKind.REJECTED, condition="a:condition", description="why")
_MODIFIED: Final = Outcome(OutcomeKind.MODIFIED, True, True)

SAMPLES: Final[tuple[Event, ...]] = (
    Started(0, 0, 1, VhostMode.ADVANCED),
    QueueDeclared(QUEUE, 0, "queue", Settings(), Lifetime.ON_CLOSE),
    QueueUpdated(3, 0, QUEUE, Settings()),
    QueueDeleted(3, 0, QUEUE),
    MuxerDeclared(MUXER, 0, "muxer", MuxerKind.LOSSY, _MUXER_OPTIONS),
    MuxerUpdated(3, 0, MUXER, _MUXER_OPTIONS),
    MuxerDeleted(3, 0, MUXER),
    Attached(3, 0, MUXER, QUEUE, (Condition("a", True, 1),)),
    Detached(4, 0, MUXER, QUEUE, 3, "destination"),
    Drawn(3, 0, MUXER, 1),
    ProducerAttached(3, 0, MUXER, "to", "container", "link", _PUBLISH_OPTIONS, QUEUE, QUEUE),
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
