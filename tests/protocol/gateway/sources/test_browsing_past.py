"""Browsing a queue as it was: the filter `ambermq:at`."""

import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ambermq.engine.commands import DeclareQueue, DeleteQueue, PurgeQueue, Settle
from ambermq.engine.entries.entry_word import pack_words, unpack_words
from ambermq.engine.entries.outcome import ACCEPTED, MODIFIED_FAILED
from ambermq.engine.history.past import open_past
from ambermq.engine.settings.queue_settings import Settings as QueueSettings
from ambermq.protocol.amqp10.performatives.classes import Attach, Detach, Source, Target
from ambermq.protocol.amqp10.types.values import Described, Int, Symbol, Timestamp, UInt, ULong
from ambermq.protocol.server_limits import ServerLimits
from tests.protocol.gateway.sources.test_queue_browser import filled, message, said
from tests.protocol.peers import Wire
from tests.protocol.watching import AT, DiskRig, Watching, at


@pytest.fixture
def watching(tmp_path: Path) -> Watching:
    """A peer of an engine on the real disk."""
    directory = str(tmp_path / "data")
    return Watching(DiskRig(directory), directory=directory)


def test_the_queue_as_it_was_comes_and_ends_by_drain(watching: Watching) -> None:
    """Messages that are long gone are shown as they were at an offset; the queue of today is as it is."""
    rig = watching.rig
    filled("a", "b", rig=rig)
    then = rig.loop.log.log_end - 1
    rig.do(PurgeQueue("key", "q"))
    filled("c", rig=rig)
    assert watching.browse("/queues/q", filter=at(ULong(then))) == [message("a"), message("b")]
    assert said(watching.browse("/queues/q")) == ["c"]


def test_a_moment_between_two_messages_of_a_run(watching: Watching) -> None:
    """The state at an offset is that after the event there: a run of messages is cut."""
    rig = watching.rig
    producer = rig.producer("q")
    first = rig.loop.log.log_end
    rig.do(rig.publish(producer, message("a"), message("b"), message("c")))
    assert said(watching.browse("q", filter=at(ULong(first + 1)))) == ["a", "b"]


def test_a_moment_by_the_clock(watching: Watching) -> None:
    """A timestamp has milliseconds: the last event at or before it counts."""
    rig = watching.rig
    rig.now_us = 2_000_000
    filled("a", rig=rig)
    rig.now_us = 3_000_000
    filled("b", rig=rig)
    rig.now_us = 4_000_001
    filled("c", rig=rig)
    assert said(watching.browse("q", filter=at(Timestamp(2_999)))) == ["a"]
    assert said(watching.browse("q", filter=at(Timestamp(3_000)))) == ["a", "b"]
    assert said(watching.browse("q", filter=at(Timestamp(4_000)))) == ["a", "b"]
    assert said(watching.browse("q", filter=at(Timestamp(4_001)))) == ["a", "b", "c"]


@pytest.mark.parametrize("value", [ULong, UInt, Int, int])
@pytest.mark.parametrize("is_bare", [True, False])
def test_the_filter_is_echoed_as_it_came(watching: Watching, value: Any, is_bare: bool) -> None:
    """Described or bare, and any integer for an offset; filters that are not ours are not echoed."""
    filled("a", rig=watching.rig)
    filters = at(value(watching.rig.loop.log.log_end - 1), is_bare=is_bare)
    answer = watching.attach("q", filter={**filters, Symbol("x:other"): "y"})
    assert answer.source is not None
    assert answer.source.filter == filters


@pytest.mark.parametrize(
    "value",
    [
        "now",
        -1,
        1.5,
        True,
        [1],
        Timestamp(-1),
        Described(Symbol("other"), ULong(1)),
        Described(AT, Described(AT, ULong(1))),
    ],
)
def test_a_value_that_names_no_moment_is_refused(watching: Watching, value: Any) -> None:
    """amqp:invalid-field that says what is expected."""
    filled("a", rig=watching.rig)
    condition, description = watching.refused("q", filters={AT: value})
    assert condition == "amqp:invalid-field"
    assert "expected" in description


def test_what_links_keep_of_the_past_is_bounded(tmp_path: Path) -> None:
    """The first may keep all that it needs, others what is left of past_bytes_max until it has sent all or is gone."""
    directory = str(tmp_path / "data")
    watching = Watching(DiskRig(directory), directory=directory, limits=ServerLimits(past_bytes_max=20))
    filled("a", "b", rig=watching.rig)
    then = at(ULong(watching.rig.loop.log.log_end - 1))
    watching.attach("q", handle=0, filter=then)
    condition, description = watching.refused("q", filters=then)
    assert condition == "amqp:resource-limit-exceeded"
    assert "would keep 16 bytes of the past and others keep 16: at most 20 are allowed (past_bytes_max)" in description
    assert said(watching.browse("q", handle=2)) == ["a", "b"]
    watching.say(Detach(handle=0, closed=True))
    assert said(watching.browse("q", handle=3, filter=then)) == ["a", "b"]
    assert said(watching.browse("q", handle=4, filter=then)) == ["a", "b"]


def test_messages_of_the_past_cannot_be_taken(watching: Watching) -> None:
    """Without distribution-mode copy the filter is refused rather than ignored."""
    filled("a", rig=watching.rig)
    assert watching.refused("q", mode=None, filters=at(ULong(3)))[0] == "amqp:invalid-field"


@pytest.mark.parametrize("moment", [ULong(1 << 40), ULong((1 << 64) - 1), Timestamp(1 << 42), Timestamp((1 << 63) - 1)])
def test_the_future_is_refused(watching: Watching, moment: ULong | Timestamp) -> None:
    """amqp:precondition-failed."""
    filled("a", rig=watching.rig)
    condition, description = watching.refused("q", filters=at(moment))
    assert condition == "amqp:precondition-failed"
    assert "future" in description


def test_what_lies_before_the_log_is_refused(watching: Watching) -> None:
    """amqp:precondition-failed, with the offset and the time at which the history begins."""
    filled("a", rig=watching.rig)
    condition, description = watching.refused("q", filters=at(Timestamp(1)))
    assert condition == "amqp:precondition-failed"
    assert "from offset 0 (1970-01-01T00:00:01.000000Z)" in description


def test_a_queue_that_was_not_there_then_is_refused(watching: Watching) -> None:
    """amqp:not-found, whatever there is now; and a queue that is gone by now is found."""
    rig = watching.rig
    filled("a", rig=rig)
    then = rig.loop.log.log_end - 1
    rig.do(DeclareQueue("key", "young", QueueSettings()), DeleteQueue("key", "q", if_unused=False, if_empty=False))
    assert watching.refused("young", filters=at(ULong(then)))[0] == "amqp:not-found"
    assert said(watching.browse("q", filter=at(ULong(then)))) == ["a"]


def test_questions_about_the_past_are_bounded(tmp_path: Path) -> None:
    """One more than past_waiting_max is refused with amqp:resource-limit-exceeded; a link that goes leaves the line."""
    directory = str(tmp_path / "data")
    peer = Watching(DiskRig(directory), directory=directory, limits=ServerLimits(past_waiting_max=1))
    filled("a", rig=peer.rig)
    source = Source(address="q", distribution_mode="copy", filter=at(ULong(3)))
    attaches = [Attach(name=f"l{n}", handle=n, role=True, source=source, target=Target()) for n in range(2)]
    peer.peer.connection.receive(b"".join(map(Wire.frame, attaches)), 0)
    peer.peer.handle_events()
    peer.peer.connection.receive(Wire.frame(Detach(handle=0, closed=True)), 0)
    peer.peer.handle_events()
    said_now = [each for each, _ in peer.settle()]
    errors = [each.error.condition for each in said_now if isinstance(each, Detach) and each.error is not None]
    assert errors == ["amqp:resource-limit-exceeded"]
    assert not peer.gateway.queries._past._job_queue


@settings(max_examples=15, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3), st.booleans()), min_size=1, max_size=6), st.data())
def test_browsing_the_past_shows_the_words_of_that_state(
    history: list[tuple[int, int, bool]], data: st.DataObject
) -> None:
    """At any offset: the words of the queue in the fold up to there, returned then ready."""
    with tempfile.TemporaryDirectory() as root:
        directory = f"{root}/data"
        rig = DiskRig(directory)
        peer = Watching(rig, directory=directory)
        producer, consumer = rig.producer("q"), rig.consumer("q")
        published: dict[int, str] = {}
        for count, credit, is_accepted in history:
            texts = [f"{len(published) + index}" for index in range(count)]
            first = rig.loop.log.draft.next_offset
            if texts:
                rig.do(rig.publish(producer, *map(message, texts)))
            published.update(zip(range(first, first + count), texts, strict=True))
            rig.loop.set_credit(consumer, credit)
            rig.do()
            held = unpack_words(rig.queue().held_by(consumer).to_bytes())
            if held:
                rig.do(Settle(consumer, pack_words(held[:1]), ACCEPTED if is_accepted else MODIFIED_FAILED))
        offset = data.draw(st.integers(consumer, rig.loop.durable_end - 1), "offset")
        shown = said(peer.browse("q", filter=at(ULong(offset))))
        rig.loop.log.close()
        with open_past(directory) as past:
            queue = past.state_at(offset).queue_named("q")
        assert queue is not None
        expected = [published[word >> 16] for words in (queue.returned, queue.ready) for word in words]
        assert shown == expected
