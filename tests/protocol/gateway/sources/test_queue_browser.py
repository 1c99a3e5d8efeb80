"""Browsing a queue: its peer gets what was available, and takes nothing."""

from itertools import count
from typing import Any
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ambermq.engine.commands import DeclareQueue, PurgeQueue, Settle
from ambermq.engine.config import EngineConfig
from ambermq.engine.effects import Answered
from ambermq.engine.entries.entry_word import pack_words, unpack_words
from ambermq.engine.entries.outcome import ACCEPTED, MODIFIED_FAILED, REJECTED, RELEASED
from ambermq.engine.model.queue import Queue
from ambermq.engine.settings.queue_settings import Settings as QueueSettings
from ambermq.engine.time_budget import TimeBudget
from ambermq.protocol.amqp10.limits import ConnectionLimits
from ambermq.protocol.amqp10.message.message import Data, Message, decode_message
from ambermq.protocol.amqp10.performatives.classes import (
    Accepted,
    Attach,
    Detach,
    Disposition,
    Header,
    Source,
    Target,
    Transfer,
)
from ambermq.protocol.amqp10.types.values import Described, Symbol
from ambermq.protocol.gateway.sources.queue_browser import QueueBrowser
from ambermq.protocol.server_limits import ServerLimits
from tests.engine.rig import Rig
from tests.protocol.peers import Wire
from tests.protocol.watching import Watching, bodies

RECEIVER = True
ATTACH = Attach(
    name="copy", handle=0, role=RECEIVER, source=Source(address="q", distribution_mode="copy"), target=Target()
)


def message(text: str, size: int = 0) -> bytes:
    """A message whose body says so."""
    return Message(header=Header(durable=True), body=(Data(text.encode().ljust(size, b".")),)).encode()


def filled(*texts: str, rig: Rig | None = None) -> Rig:
    """An engine whose queue `q` holds messages."""
    rig = rig or Rig()
    producer = rig.producer()
    for text in texts:
        rig.do(rig.publish(producer, message(text)))
    return rig


def said(payloads: list[bytes]) -> list[str]:
    """What the bodies of messages say."""
    return [str(decode_message(payload).body[0].value.rstrip(b"."), "utf-8") for payload in payloads]


@pytest.mark.parametrize("address", ["q", "/queues/q", "/queues/%71"])
def test_a_browser_gets_the_queue_in_order_and_takes_nothing(address: str) -> None:
    """All that is available comes byte for byte; no event is written and no counter moves, however often."""
    rig = filled("a", "b", "c")
    peer = Watching(rig)
    before, log_end = rig.queue(), rig.loop.log.log_end
    for _ in range(2):
        assert peer.browse(address) == [message("a"), message("b"), message("c")]
    assert rig.queue() is before
    assert rig.loop.log.log_end == log_end
    assert rig.loop.state.consumers.get(before.id) is None


def selecting(text: str) -> dict[Any, Any]:
    """A source's filter for a selector."""
    return {Symbol("any"): Described(Symbol("apache.org:selector-filter:string"), text)}


def test_a_browser_selects() -> None:
    """What is not selected is left out, the drain is answered all the same, and what is applied is told."""
    rig = filled("a", "b", "c", "d")
    peer = Watching(rig)
    colours = [
        Message(application_properties={"colour": colour}, body=(Data(colour.encode()),)).encode()
        for colour in ("red", "green", "red")
    ]
    rig.do(rig.publish(rig.producer(), *colours))
    filters = selecting("colour = 'red'")
    source = peer.attach("q", filter=filters, handle=3).source
    assert source is not None
    assert source.filter == filters
    assert peer.drain(handle=3) == [colours[0], colours[2]]
    assert peer.browse("q", filter=selecting("colour IS NULL")) == [message(text) for text in "abcd"]


@pytest.mark.parametrize("step_us", [0, 1000, 9000])
def test_a_turn_of_browsers_tests_messages_for_a_limited_time(step_us: int) -> None:
    """Whatever a message costs, the same ones come; a slow selector leaves the other messages to later turns."""
    rig = Rig()
    producer = rig.producer()
    colours = [
        Message(application_properties={"colour": colour}, body=(Data(b"%d" % number),)).encode()
        for number, colour in enumerate(["red", "green", "red"] * 10)
    ]
    rig.do(rig.publish(producer, *colours))
    rig.loop.matching = TimeBudget(count(0, step_us * 1000).__next__, duration_us=5000)
    tested: list[int] = []
    selected = QueueBrowser._selected

    def counted(*arguments: Any) -> Any:
        payloads = selected(*arguments)
        tested.append(len(payloads))
        return payloads

    with mock.patch.object(QueueBrowser, "_selected", counted):
        payloads = Watching(rig).browse("q", filter=selecting("colour = 'red'"))
    assert payloads == [colour for number, colour in enumerate(colours) if number % 3 != 1]
    assert sum(tested) == 30
    assert max(tested) <= {0: 30, 1000: 6, 9000: 2}[step_us]


def test_a_bad_selector_refuses_the_browser() -> None:
    """Named are the place and what stands there."""
    condition, description = Watching(filled("a")).refused("q", filters=selecting("colour = = 1"))
    assert condition == "amqp:invalid-field"
    assert "character 9, '='" in description


def test_the_attach_says_copy_and_the_address() -> None:
    """The broker's attach reports distribution-mode copy, and no filter where none is applied."""
    answer = Watching(filled("a")).attach("q", filter={"x:filter": "y"})
    assert answer.source is not None
    assert (answer.source.address, answer.source.distribution_mode, answer.source.filter) == ("q", "copy", None)


def test_what_came_back_is_first_and_what_is_acquired_is_not_shown() -> None:
    """Returned messages stand at the head, with their delivery-count; those that a consumer holds are not available."""
    rig = filled("a", "b", "c", "d")
    consumer = rig.consumer(credit=2)
    rig.do()
    held = unpack_words(rig.queue().held_by(consumer).to_bytes())
    rig.do(Settle(consumer, pack_words(held[1:]), MODIFIED_FAILED))
    payloads = Watching(rig).browse("q")
    assert said(payloads) == ["b", "c", "d"]
    header = decode_message(payloads[0]).header
    assert header is not None
    assert (header.durable, header.delivery_count) == (True, 1)
    assert payloads[1] == message("c")


def test_a_browser_sees_the_moment_of_its_attach() -> None:
    """What comes and goes afterwards changes nothing of what is shown; a purge neither."""
    rig = filled("a", "b")
    peer = Watching(rig)
    peer.attach("q")
    filled("c", rig=rig)
    rig.do(PurgeQueue("key", "q"))
    assert said(peer.drain()) == ["a", "b"]


def test_nothing_is_sent_before_the_moment_is_durable() -> None:
    """A message that is written and not synced yet is not shown before it is: neither is the attach answered."""
    rig = filled("a")
    peer = Watching(rig)
    rig.step(rig.publish(rig.producer(), message("b")))
    peer.peer.connection.receive(Wire.frame(ATTACH), 0)
    peer.peer.handle_events()
    assert not [effect for effect in rig.step() if type(effect) is Answered]
    (answered,) = [effect for effect in rig.completed() if type(effect) is Answered]
    assert answered.after == rig.loop.durable_end
    peer.gateway.carry_out([answered])
    assert said(peer.drain()) == ["a", "b"]


def test_an_unknown_queue_is_refused_and_not_created() -> None:
    """amqp:not-found, for browsing creates nothing."""
    peer = Watching()
    assert peer.refused("/queues/none")[0] == "amqp:not-found"
    assert peer.rig.loop.state.queue_named("none") is None
    assert peer.refused("/queues/a/b")[0] == "amqp:not-found"
    assert peer.refused("/queues/%zz")[0] == "amqp:invalid-field"


def test_credit_is_kept_and_nothing_comes_later() -> None:
    """Credit bounds what comes; what is left of it stays when all was sent, and new messages do not come."""
    rig = filled("a", "b", "c")
    peer = Watching(rig)
    peer.attach("q")
    assert said(bodies(peer.flow(2))) == ["a", "b"]
    assert said(bodies(peer.flow(5, count=2))) == ["c"]
    filled("d", rig=rig)
    assert bodies(peer.settle()) == []
    assert peer.drain() == []


def test_a_drain_with_less_credit_than_messages_is_answered() -> None:
    """The credit is used up, and the drain ends there."""
    peer = Watching(filled("a", "b", "c"))
    peer.attach("q")
    assert said(peer.drain(credit=2)) == ["a", "b"]


def test_the_window_of_the_session_is_kept() -> None:
    """No more transfers than the window; the rest when it opens."""
    peer = Watching(filled("a", "b", "c"), window=2)
    peer.attach("q")
    assert said(bodies(peer.flow(10))) == ["a", "b"]
    assert said(bodies(peer.flow(8, count=2, next_incoming_id=2, incoming_window=2))) == ["c"]


def test_a_peer_that_does_not_read_gets_nothing() -> None:
    """While a connection is paused nothing is sent; it goes on when it is resumed."""
    peer = Watching(filled("a", "b"))
    peer.attach("q")
    peer.peer.pause()
    assert bodies(peer.flow(10)) == []
    peer.peer.resume()
    assert said(bodies(peer.settle())) == ["a", "b"]


def test_a_turn_is_bounded_and_shared() -> None:
    """Two browsers share turns of a bounded number of messages; both get everything."""
    rig = filled(*[str(number) for number in range(20)])
    peer = Watching(rig, limits=ServerLimits(source_messages=3))
    peer.attach("q", handle=0)
    peer.attach("q", handle=1)
    peer.turns = 0
    peer.flow(100, handle=0)
    assert peer.turns >= 7
    assert len(bodies(peer.flow(100, handle=1))) == 20


def test_a_turn_is_bounded_by_bytes() -> None:
    """The message that uses the bytes of a turn up is its last."""
    rig = Rig()
    rig.do(rig.publish(rig.producer(), *[message(str(number), 400) for number in range(6)]))
    peer = Watching(rig, limits=ServerLimits(source_bytes=500))
    peer.attach("q")
    peer.turns = 0
    assert len(bodies(peer.flow(100))) == 6
    assert peer.turns == 3


def test_messages_come_from_the_disk() -> None:
    """Bodies that are no longer in memory are read, and nothing is lost or out of order."""
    rig = filled(*[f"{number:03}" for number in range(100)])
    rig.forget_pages()
    assert said(Watching(rig).browse("q")) == [f"{number:03}" for number in range(100)]


def test_a_message_that_cannot_be_read_is_left_out() -> None:
    """The others come; the queue is as it was, for a browser reports nothing."""
    rig = filled(*[f"{number:03}".ljust(300, "x") for number in range(12)])
    rig.forget_pages()
    rig.damage(b"000x")
    before = rig.queue()
    shown = said(Watching(rig).browse("q"))
    assert f"{11:03}".ljust(300, "x") in shown
    assert f"{0:03}".ljust(300, "x") not in shown
    assert rig.queue() is before


def test_large_messages_are_whole() -> None:
    """A message that is stored in pieces is put together."""
    rig = Rig(config=EngineConfig(chunk_bytes=1000))
    large = message("x" * 5000)
    rig.do(rig.publish(rig.producer(), large))
    assert Watching(rig).browse("q") == [large]


@pytest.mark.parametrize(("mode", "settled"), [(None, True), (1, True), (2, True), (0, False)])
def test_deliveries_are_settled_unless_asked_for_otherwise(mode: int | None, settled: bool) -> None:
    """Only snd-settle-mode unsettled leaves them to the peer."""
    peer = Watching(filled("a"))
    peer.attach("q", **({} if mode is None else {"snd_settle_mode": mode}))
    (transfer,) = [each for each, _ in peer.flow(1) if isinstance(each, Transfer)]
    assert bool(transfer.settled) is settled


@pytest.mark.parametrize("is_second", [True, False])
def test_outcomes_mean_nothing_and_are_settled(is_second: bool) -> None:
    """A disposition changes nothing of the queue; one that waits for ours gets it."""
    rig = filled("a")
    peer = Watching(rig)
    before = rig.queue()
    peer.attach("q", snd_settle_mode=0, rcv_settle_mode=1 if is_second else 0)
    (transfer,) = [each for each, _ in peer.flow(1) if isinstance(each, Transfer)]
    answers = peer.say(Disposition(role=RECEIVER, first=transfer.delivery_id, settled=not is_second, state=Accepted()))
    settlements = [each for each in answers if isinstance(each, Disposition)]
    assert [(each.first, each.settled) for each in settlements] == ([(transfer.delivery_id, True)] if is_second else [])
    assert rig.queue() is before


def test_a_browser_that_settles_nothing_is_bounded_and_its_drain_is_answered() -> None:
    """The session's bound on what is unsettled ends a drain; what is settled makes room for more."""
    peer = Watching(filled("a", "b", "c"), connection=ConnectionLimits(unsettled_max=2))
    peer.attach("q", snd_settle_mode=0)
    assert said(peer.drain()) == ["a", "b"]
    peer.flow(10, count=1 << 20)
    settled = Disposition(role=RECEIVER, first=0, last=1, settled=True, state=Accepted())
    assert said(bodies(peer.give(Wire.frame(settled)))) == ["c"]


def test_a_browser_does_not_last_for_ever() -> None:
    """After browse_ms_max its link ends with amqp:resource-limit-exceeded, and its state is let go."""
    peer = Watching(filled("a"), limits=ServerLimits(browse_ms_max=1000))
    peer.attach("q")
    peer.gateway.sources.end_expired(5000)
    peer.gateway.sources.end_expired(5999)
    assert peer.settle() == []
    peer.gateway.sources.end_expired(6000)
    (goodbye,) = [each for each, _ in peer.settle() if isinstance(each, Detach)]
    assert goodbye.error is not None
    assert goodbye.error.condition == "amqp:resource-limit-exceeded"
    assert not peer.gateway.sources.due_ms


def test_browsers_are_bounded_in_number() -> None:
    """One more than sources_max is refused; a detached one makes room."""
    peer = Watching(filled("a"), limits=ServerLimits(sources_max=1))
    peer.attach("q", handle=0)
    assert peer.refused("q")[0] == "amqp:resource-limit-exceeded"
    peer.say(Detach(handle=0, closed=True))
    assert said(peer.browse("q", handle=1)) == ["a"]


def test_a_lost_connection_leaves_nothing() -> None:
    """All links of a connection that is gone are forgotten."""
    peer = Watching(filled("a"))
    peer.attach("q")
    peer.peer.lost()
    assert not peer.gateway.sources.due_ms
    assert not peer.gateway.sources.ready


steps = st.lists(
    st.one_of(
        st.tuples(st.just("publish"), st.integers(1, 5)),
        st.tuples(st.just("take"), st.integers(1, 4)),
        st.tuples(st.sampled_from(("release", "fail", "accept", "reject")), st.integers(0, 3)),
    ),
    max_size=12,
)
OUTCOMES = {"release": RELEASED, "fail": MODIFIED_FAILED, "accept": ACCEPTED, "reject": REJECTED}


@settings(max_examples=40, deadline=None)
@given(steps, st.integers(1, 5), st.booleans())
def test_browsing_shows_the_words_of_the_state(history: list[tuple[str, int]], turn: int, is_cold: bool) -> None:
    """After any history: what a browser gets are the words of the queue, returned then ready, however it is cut."""
    rig = Rig()
    rig.do(DeclareQueue("key", "q", QueueSettings()))
    producer, consumer = rig.producer(), rig.consumer()
    published: dict[int, str] = {}
    for step, number in history:
        if step == "publish":
            texts = [f"{len(published) + index}" for index in range(number)]
            first = rig.loop.log.draft.next_offset
            rig.do(rig.publish(producer, *map(message, texts)))
            published.update(zip(range(first, first + number), texts, strict=True))
        elif step == "take":
            rig.loop.set_credit(consumer, number)
            rig.do()
            rig.loop.set_credit(consumer, 0)
        else:
            held = unpack_words(rig.queue().held_by(consumer).to_bytes())
            if held:
                rig.do(Settle(consumer, pack_words((held[number % len(held)],)), OUTCOMES[step]))
    if is_cold:
        rig.forget_pages()
    queue: Queue = rig.queue()
    expected = [published[word >> 16] for words in (queue.returned, queue.ready) for word in words]
    assert said(Watching(rig, limits=ServerLimits(source_messages=turn)).browse("q")) == expected
    assert rig.queue() is queue
