"""docs/log-source.md lists every event with its facts, and its example runs."""

import contextlib
import io
import re
from pathlib import Path

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
from ambermq.engine.model.lifetime import Lifetime
from ambermq.engine.model.muxer import MuxerKind, Options
from ambermq.engine.model.outcome import Outcome, OutcomeKind
from ambermq.engine.model.queue import Settings
from ambermq.engine.model.subscription import Subscription
from ambermq.engine.model.vhost_mode import VhostMode
from ambermq.engine.records.event_fields import facts_of, type_of
from ambermq.tools.broker.child_broker import ChildBroker
from tests.docs.pages import blocks, rows

_PAGE = "docs/log-source.md"
_FULL = Outcome(OutcomeKind.MODIFIED, delivery_failed=True, condition="app:why", description="so")
_EVENTS: tuple[Event, ...] = (
    Started(1, 2, 3, VhostMode.ADVANCED),
    QueueDeclared(1, 2, "q", Settings(), Lifetime.ON_CLOSE),
    QueueDeleted(1, 2, 3),
    MuxerDeclared(1, 2, "m", MuxerKind.LOSSY, Options(separator="/", lifetime=Lifetime.ON_CLOSE)),
    MuxerDeleted(1, 2, 3),
    Attached(1, 2, 3, 4, "q"),
    Detached(1, 2, 3, 4, 5, "q"),
    Drawn(1, 2, 3, 4),
    ProducerAttached(1, 2, 3, "q", "c", "l", owns=4),
    ProducerDetached(1, 2, 3),
    ConsumerAttached(1, 2, 3, "c", "l", "a = 1", 4),
    ConsumerDetached(1, 2, 3),
    Chunked(1, 2, 3, b""),
    Published(1, 2, (3,), 4, bytes(8), 0, chunks=(5,)),
    Acquired(1, 2, 3, (4,), bytes(8)),
    Settled(1, 2, 3, 4, _FULL, bytes(8)),
    Purged(1, 2, 3, 4),
    Damaged(1, 2, 3, bytes(8)),
    Lost(1, 2, 3, 4),
    Reset(1, 2),
    Compacted(1, 2, 3, 4, 5, 6, 7, 8, 9),
    Subscribed(1, 2, 3, Subscription("t", "n", "c", selector="a = 1")),
    QueueUpdated(1, 2, 3, Settings()),
    MuxerUpdated(1, 2, 3, Options(probability=0.5)),
)


def test_every_fact_is_listed() -> None:
    """The table names each type once, in the order of the records, and its facts as they are."""
    listed = [(kind.strip("`| "), set(re.findall(r"`(\w+)`", cell))) for kind, cell in rows(_PAGE, "## Facts")]
    assert listed == [(type_of(event), set(facts_of(event, lambda _: "q"))) for event in _EVENTS]


def test_the_example_runs(tmp_path: Path) -> None:
    """The first events of a young broker, by a client that knows nothing but AMQP."""
    (example,) = blocks(_PAGE, "python")
    broker = ChildBroker(tmp_path / "data")
    broker.start()
    said = io.StringIO()
    try:
        with contextlib.redirect_stdout(said):
            exec(compile(example, _PAGE, "exec"), {"URL": broker.url})
    finally:
        broker.kill()
    assert said.getvalue().splitlines() == [
        "0 started {'epoch': 1}",
        "1 muxer-declared {'muxer': 'QUEUE', 'class': 'DESTINATION'}",
    ]
