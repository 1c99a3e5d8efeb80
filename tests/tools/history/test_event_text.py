"""Events as a person would tell them."""

import typing

import pytest

from ambermq.engine import events
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
from ambermq.engine.model.entry_word import make_words, pack_words
from ambermq.engine.model.lifetime import Lifetime
from ambermq.engine.model.muxer import MuxerKind, Options
from ambermq.engine.model.outcome import ACCEPTED, Outcome, OutcomeKind
from ambermq.engine.model.queue import Settings
from ambermq.engine.model.subscription import Subscription
from ambermq.engine.model.vhost_mode import VhostMode
from ambermq.engine.records.types import TYPE_NAMES
from ambermq.tools.history.event_text import EVENT_TYPES, iso_time, tell, type_of
from ambermq.tools.past.id_names import IdNames

TIME_US = 1_700_000_000_000_001
WORDS = make_words(10, [100, 100, 100])
GAPS = pack_words([offset << 16 | 1 for offset in range(20, 36, 2)])
MODIFIED = Outcome(OutcomeKind.MODIFIED, delivery_failed=True, undeliverable_here=True, annotations=((b"k", b"v"),))
REJECTED = Outcome(OutcomeKind.REJECTED, condition="amqp:decode-error", description="no JSON")

WIRING: list[Event] = [
    MuxerDeclared(1, TIME_US, "QUEUE", MuxerKind.DESTINATION),
    QueueDeclared(2, TIME_US, "orders", Settings(messages_max=1000)),
    ProducerAttached(3, TIME_US, 1, "orders", "shop", "out"),
    ConsumerAttached(4, TIME_US, 2, "store", "in"),
]

TOLD: list[tuple[Event, str]] = [
    (Started(0, TIME_US, 3), "the broker started, epoch 3"),
    (Started(0, TIME_US, 1, VhostMode.ADVANCED), "the broker started, epoch 1, in advanced mode"),
    (WIRING[0], "muxer 'QUEUE' of class DESTINATION declared"),
    (WIRING[1], "queue 'orders' declared, at most 1,000 messages"),
    (WIRING[2], "shop/out sends to 'orders'"),
    (WIRING[3], "store/in receives from 'orders'"),
    (Attached(5, TIME_US, 1, 2, "orders"), "queue 'orders' attached to 'QUEUE' for 'orders'"),
    (Detached(5, TIME_US, 1, 2, 5, "orders"), "queue 'orders' detached from 'QUEUE' for 'orders'"),
    (MuxerDeleted(5, TIME_US, 1), "muxer 'QUEUE' deleted"),
    (
        MuxerUpdated(5, TIME_US, 1, Options(probability=0.25, seed=-7)),
        "muxer 'QUEUE' updated, probability 0.25, seed -7",
    ),
    (QueueUpdated(5, TIME_US, 2, Settings(messages_max=2000)), "queue 'orders' updated, at most 2,000 messages"),
    (
        QueueUpdated(5, TIME_US, 2, Settings()),
        "queue 'orders' updated, at most as many messages as the broker takes",
    ),
    (Drawn(5, TIME_US, 1, 3), "'QUEUE' drew for 3 messages"),
    (Chunked(6, TIME_US, 3, b""), "a piece of a large message from shop/out"),
    (Published(10, TIME_US, (2,), 3, WORDS, 300), "3 messages to 'orders', 300 B, durable, from shop/out"),
    (
        Published(10, TIME_US, (2, 99), 98, make_words(10, [1]), 3 << 20, False, (6, 7)),
        "1 message to 'orders', 'queue 99', 3.0 MiB, not durable, in 3 pieces, from link 98",
    ),
    (Acquired(13, TIME_US, 2, (4,), WORDS), "3 messages of 'orders' to store/in: 10 to 12"),
    (Settled(14, TIME_US, 2, 4, ACCEPTED, WORDS), "3 messages of 'orders' accepted by store/in: 10 to 12"),
    (
        Settled(14, TIME_US, 2, 4, ACCEPTED, GAPS),
        "8 messages of 'orders' accepted by store/in: 20, 22, 24, 26, 28, 30 and 2 more",
    ),
    (
        Settled(14, TIME_US, 2, 4, MODIFIED, make_words(9, [1])),
        "1 message of 'orders' modified (delivery failed, undeliverable here, 1 annotations) by store/in: 9",
    ),
    (
        Settled(14, TIME_US, 2, 4, REJECTED, make_words(9, [1])),
        "1 message of 'orders' rejected (amqp:decode-error, no JSON) by store/in: 9",
    ),
    (Purged(15, TIME_US, 2, 12), "'orders' purged of what was waiting"),
    (Damaged(16, TIME_US, 2, make_words(11, [5])), "1 message of 'orders' cannot be read and is set aside: 11"),
    (
        Damaged(16, TIME_US, 2, make_words(11, [5, 6])),
        "2 messages of 'orders' cannot be read and are set aside: 11 to 12",
    ),
    (Lost(17, TIME_US, 5, 9), "records 5 to 8 are lost"),
    (ProducerDetached(18, TIME_US, 3), "shop/out sends no more"),
    (ConsumerDetached(19, TIME_US, 4), "store/in receives no more"),
    (QueueDeleted(20, TIME_US, 2), "queue 'orders' deleted"),
    (Reset(21, TIME_US), "the virtual host was reset: all queues, messages and links are gone"),
    (
        MuxerDeclared(24, TIME_US, "net", MuxerKind.LOSSY, Options(probability=0.5, seed=7)),
        "muxer 'net' of class LOSSY declared, probability 0.5, seed 7",
    ),
    (
        MuxerDeclared(24, TIME_US, "paths", MuxerKind.WILD_PROPERTY, Options(separator="/")),
        "muxer 'paths' of class WILD_PROPERTY declared, separator '/'",
    ),
    (
        QueueDeclared(2, TIME_US, "orders", Settings(), Lifetime.ON_CLOSE),
        "queue 'orders' declared, until its link closes",
    ),
    (ConsumerAttached(4, TIME_US, 2, "c", "l", "a = 1"), "c/l receives from 'orders' where a = 1"),
    (
        Subscribed(23, TIME_US, 2, Subscription("news.#", "mine", "c", False, False, "a = 1", True)),
        "'orders' subscribes c/mine to topic 'news.#' where a = 1 (durable), but for its own messages",
    ),
    (
        Subscribed(23, TIME_US, 2, Subscription("news", "ours", None, True, True)),
        "'orders' subscribes ours to topic 'news' (volatile, shared)",
    ),
    (
        Compacted(22, TIME_US, 20, 3, 1, 5000, 12, 90_000, 4_200),
        "compacted: history begins at 20, 90,000 bytes became 4,200, 5,000 records 12",
    ),
]


@pytest.fixture
def names() -> IdNames:
    known = IdNames()
    for event in WIRING:
        known.hear(event)
    return known


@pytest.mark.parametrize(("event", "words"), TOLD, ids=lambda case: type(case).__name__)
def test_every_event_is_told_in_words_with_its_names(names: IdNames, event: Event, words: str) -> None:
    """Ids are resolved; what was never heard of is shown by its id."""
    assert tell(event, names).words == words


def test_no_event_is_left_untold() -> None:
    """The story knows every event, by the name that its record type has."""
    assert {type(event) for event, _ in TOLD} == set(typing.get_args(events.Event))
    assert sorted(EVENT_TYPES) == sorted(TYPE_NAMES.values())


def test_a_line_says_where_when_and_what_kind(names: IdNames) -> None:
    """The offset, the time in UTC, the kind, the words."""
    event = Settled(14, TIME_US, 2, 4, ACCEPTED, WORDS)
    line = str(tell(event, names))
    assert line.split()[:3] == ["14", "2023-11-14T22:13:20.000001Z", "settled"]
    assert tell(event, names).as_json() == {
        "offset": 14,
        "time": "2023-11-14T22:13:20.000001Z",
        "type": "settled",
        "queue": "orders",
        "queue_id": 2,
        "count": 3,
        "consumer": 4,
        "outcome": "accepted",
        "bytes": 300,
        "offsets": [[10, 12]],
        "words": "3 messages of 'orders' accepted by store/in: 10 to 12",
    }


def test_time_is_utc_whatever_the_zone(monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine's zone changes nothing, and no microsecond is rounded away."""
    monkeypatch.setenv("TZ", "Asia/Kathmandu")
    assert iso_time(0) == "1970-01-01T00:00:00.000000Z"
    assert iso_time(TIME_US) == "2023-11-14T22:13:20.000001Z"


def test_a_muxer_that_is_attached_is_called_one(names: IdNames) -> None:
    """And what a member receives by is left out where there is nothing to say."""
    assert tell(Attached(5, TIME_US, 1, 1), names).words == "muxer 'QUEUE' attached to 'QUEUE'"


@pytest.mark.parametrize("event", [event for event, _ in TOLD], ids=lambda event: type(event).__name__)
def test_an_event_knows_its_queues(names: IdNames, event: Event) -> None:
    """What is about a queue, or from or to a link of it, is found by the queue's name."""
    about_none = {"started", "drawn", "lost", "reset", "compacted"}
    about_none |= {"muxer-declared", "muxer-updated", "muxer-deleted"}
    if type_of(event) in about_none:
        assert names.queues_of(event) == ()
    else:
        assert "orders" in names.queues_of(event)
