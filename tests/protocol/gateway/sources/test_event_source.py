"""`/log` as a source: the events themselves, from a moment on, then as they become durable."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ambermq.engine.commands import DeclareQueue, DeleteQueue, Settle
from ambermq.engine.entries.entry_word import pack_words, unpack_words
from ambermq.engine.entries.outcome import ACCEPTED
from ambermq.engine.records.event_fields import type_of
from ambermq.engine.records.reader import events_of
from ambermq.engine.settings.queue_settings import Settings as QueueSettings
from ambermq.log.format.batch import BATCH_MAGIC
from ambermq.log.recovery.recovery import Recovery
from ambermq.protocol.amqp10.message.message import AmqpValue, Message, decode_message
from ambermq.protocol.amqp10.performatives.classes import Detach
from ambermq.protocol.amqp10.types.values import Timestamp, ULong
from ambermq.protocol.auth.identity import Identity
from ambermq.protocol.gateway.sources.event_source import EventSource
from tests.engine.rig import COLD, Rig
from tests.log.lives import DIRECTORY
from tests.protocol.watching import DiskRig, Watching, at, bodies


def decoded(said: list[tuple[Any, bytes]]) -> list[Message]:
    """The messages among what came."""
    return [decode_message(payload) for payload in bodies(said)]


def offsets(messages: list[Message]) -> list[int]:
    """The offsets of their events."""
    return [message.properties.message_id for message in messages if message.properties]


def subjects(messages: list[Message]) -> list[str]:
    """The types of their events."""
    return [message.properties.subject or "" for message in messages if message.properties]


def facts(message: Message) -> dict[str, Any]:
    """What an event says."""
    (body,) = message.body
    assert isinstance(body, AmqpValue)
    assert isinstance(body.value, dict)
    return body.value


def busy(rig: Rig) -> None:
    """Declare a queue, fill it and accept one of its messages."""
    producer = rig.producer("q")
    rig.do(rig.publish(producer, b"\x00Sw\xa1\x01a", b"\x00Sw\xa1\x01b"))
    consumer = rig.consumer("q", credit=1)
    rig.do()
    held = unpack_words(rig.queue().held_by(consumer).to_bytes())
    rig.do(Settle(consumer, pack_words(held), ACCEPTED))
    rig.do(DeclareQueue("key", "later", QueueSettings()))


@pytest.fixture
def watching(tmp_path: Path) -> Watching:
    """A peer of an engine on the real disk."""
    directory = str(tmp_path / "data")
    return Watching(DiskRig(directory), directory=directory)


def test_all_events_come_in_order(watching: Watching) -> None:
    """From offset 0: every event, one message each, with id, subject, time, properties and facts."""
    busy(watching.rig)
    messages = watching.events(filter=at(ULong(0)))
    assert offsets(messages) == sorted(set(offsets(messages)))
    assert subjects(messages)[:1] == ["started"]
    published = messages[subjects(messages).index("published")]
    assert published.properties is not None
    assert type(published.properties.message_id) is ULong
    assert published.properties.creation_time == 1000
    told = published.application_properties
    assert told is not None
    first = int(published.properties.message_id)
    assert (told["type"], told["offset"], told["timestamp"], told["next"]) == ("published", first, 1_000_000, first + 2)
    assert (told["queue"], told["count"]) == ("q", 2)
    assert facts(published)["queues"] == ["q"]
    assert facts(published)["offsets"] == [[first, first + 1]]
    settled = messages[subjects(messages).index("settled")]
    assert facts(settled)["outcome"] == "accepted"
    assert facts(settled)["offsets"] == [[first, first]]


def test_then_they_come_as_they_become_durable(watching: Watching) -> None:
    """Without a moment: only what is durable after the attach, and no earlier than it is."""
    rig = watching.rig
    producer = rig.producer("q")
    answer = watching.attach("/log", mode=None)
    assert answer.source is not None
    assert answer.source.distribution_mode == "copy"
    assert bodies(watching.flow(100)) == []
    rig.step(rig.publish(producer, b"\x00Sw\xa1\x01a"))
    sources = watching.gateway.sources
    sources.wake_waiters()
    assert not sources.ready
    rig.completed()
    sources.wake_waiters()
    assert sources.ready
    assert subjects(decoded(watching.settle())) == ["published"]


def test_credit_and_drain(watching: Watching) -> None:
    """Credit bounds what comes; a drain is answered at the durable end, and later events need credit again."""
    busy(watching.rig)
    everything = offsets(watching.events(filter=at(ULong(0))))
    watching.attach("/log", mode=None, filter=at(ULong(0)))
    assert offsets(decoded(watching.flow(3))) == everything[:3]
    assert [decode_message(each) for each in watching.drain()] != []
    watching.rig.do(DeclareQueue("key", "more", QueueSettings()))
    assert bodies(watching.settle()) == []
    said = watching.flow(10, count=1 << 20)
    assert "queue-declared" in subjects(decoded(said))


def test_a_link_without_credit_costs_nothing(watching: Watching) -> None:
    """Events are read when there is credit, not before, and a piece at a time."""
    for turn in range(4):
        watching.rig.do(*[DeclareQueue("key", f"{turn}-{number}", QueueSettings()) for number in range(200)])
    watching.attach("/log", mode=None, filter=at(ULong(0)))
    (source,) = watching.gateway.sources.due_ms
    assert isinstance(source, EventSource)
    assert not source._messages
    watching.flow(1)
    assert 0 < len(source._messages) < 1000


@pytest.mark.parametrize("is_time", [True, False])
def test_the_filter_is_echoed_and_says_where_to_begin(watching: Watching, is_time: bool) -> None:
    """An offset or a timestamp: the first event is that at it or the next one behind it."""
    rig = watching.rig
    busy(rig)
    rig.now_us = 5_000_000
    start = rig.loop.log.log_end
    rig.do(DeclareQueue("key", "young", QueueSettings()))
    filters = at(Timestamp(4_000) if is_time else ULong(start))
    answer = watching.attach("/log", mode=None, filter=filters)
    assert answer.source is not None
    assert answer.source.filter == filters
    found = [decode_message(each) for each in watching.drain()]
    assert offsets(found)[0] == start
    assert facts(found[0])["queue"] == "young"


def test_a_run_can_be_begun_in_its_middle(watching: Watching) -> None:
    """Going on at `next`, or anywhere: a run of messages is told from that offset on."""
    rig = watching.rig
    first = rig.loop.log.log_end
    rig.do(rig.publish(rig.producer("q"), *[b"\x00Sw\xa1\x01a"] * 5))
    (published,) = [each for each in watching.events(filter=at(ULong(first))) if subjects([each]) == ["published"]]
    assert published.properties is not None
    begin = int(published.properties.message_id)
    found = watching.events(filter=at(ULong(begin + 3)))
    assert facts(found[0])["offsets"] == [[begin + 3, begin + 4]]
    assert found[0].application_properties is not None
    assert found[0].application_properties["next"] == begin + 5


@pytest.mark.parametrize("moment", [ULong(1 << 40), ULong((1 << 64) - 1), Timestamp(1 << 42)])
def test_the_future_is_refused(watching: Watching, moment: ULong | Timestamp) -> None:
    """amqp:precondition-failed, and what there is is told."""
    condition, description = watching.refused("/log", filters=at(moment))
    assert condition == "amqp:precondition-failed"
    assert "future" in description


def test_a_user_without_permission_is_refused(tmp_path: Path) -> None:
    """amqp:unauthorized-access, before anything is looked at."""
    peer = Watching(DiskRig(str(tmp_path / "data")), readers=("alice",))
    assert peer.refused("/log", mode=None)[0] == "amqp:unauthorized-access"
    peer.peer.identity = Identity("alice")
    peer.attach("/log", mode=None)


def test_deleted_queues_keep_their_names(watching: Watching) -> None:
    """A queue that is gone by now is named by the events before its end, as far as its declaration was told."""
    busy(watching.rig)
    watching.rig.do(DeleteQueue("key", "q", if_unused=False, if_empty=False))
    messages = watching.events(filter=at(ULong(0)))
    named = {facts(each).get("queue") for each in messages if subjects([each]) in (["acquired"], ["settled"])}
    assert named == {"q"}


def test_a_damaged_log_ends_the_link(watching: Watching) -> None:
    """amqp:internal-error that says where; the connection goes on."""
    rig = watching.rig
    for turn in range(4):
        rig.do(*[DeclareQueue("key", f"{turn}-{number}", QueueSettings()) for number in range(200)])
    watching.attach("/log", mode=None, filter=at(ULong(0)))
    segments = Path(watching.directory, "segments").iterdir()
    (path,) = [each for each in segments if each.read_bytes()[:8] == b"AMBERSEG"]
    data = bytearray(path.read_bytes())
    data[data.rindex(BATCH_MAGIC.to_bytes(4, "little")) + 20] ^= 1
    path.write_bytes(bytes(data))
    said = watching.flow(10_000)
    assert len(bodies(said)) >= 500
    (goodbye,) = [each for each, _ in said if isinstance(each, Detach)]
    assert goodbye.error is not None
    assert goodbye.error.condition == "amqp:internal-error"
    assert path.name in str(goodbye.error.description)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 30), st.booleans()), min_size=1, max_size=12))
def test_every_event_is_told_once(history: list[tuple[int, int, bool]]) -> None:
    """However credit, publishing, rolls of segments and losses of the page cache fall together, nothing is left out."""
    rig = Rig()
    peer = Watching(rig)
    start = rig.loop.durable_end
    peer.attach("/log", mode=None)
    found: list[Message] = []
    producer = rig.producer()
    for credit, count, is_cold in history:
        rig.do(*[rig.publish(producer, b"\x00Sw\xa1\x64" + bytes(100)) for _ in range(count)])
        if is_cold:
            rig.forget_pages()
        found += decoded(peer.flow(credit, count=len(found)))
    found += [decode_message(each) for each in peer.drain()]
    rig.kill()
    recovery = Recovery.open(rig.storage, DIRECTORY, COLD, rig.now_us)
    expected = [event for batch in recovery.batches() for event in events_of(batch) if event.offset >= start]
    recovery.close()
    assert offsets(found) == [event.offset for event in expected]
    assert subjects(found) == [type_of(event) for event in expected]
