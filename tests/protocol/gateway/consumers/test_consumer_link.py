"""Deliveries that were dealt to a receiver which takes its credit back return to the queue."""

from types import SimpleNamespace
from typing import Any

import pytest

from ambermq.engine.effects import Deliver
from ambermq.engine.entries.discard_reason import MoveReason
from ambermq.engine.entries.entry import Entry
from ambermq.engine.entries.marks import dead_letter_marks
from ambermq.engine.loop.schedule import LATER, SOON
from ambermq.protocol.amqp10.limits import ConnectionLimits
from ambermq.protocol.amqp10.message.message import Data, Message, decode_message
from ambermq.protocol.amqp10.performatives.classes import (
    Accepted,
    Attach,
    DeliveryState,
    Detach,
    Disposition,
    End,
    Error,
    Flow,
    Header,
    Modified,
    Received,
    Rejected,
    Released,
    Source,
    Transfer,
)
from ambermq.protocol.amqp10.types.values import Symbol
from ambermq.protocol.gateway.consumers.consumer_link import ConsumerLink
from ambermq.protocol.gateway.links.outgoing_message import redelivered
from ambermq.protocol.gateway.links.traffic import Traffic
from ambermq.protocol.server_limits import ServerLimits
from tests.protocol.peers import FIRST_ID, Wire, cut
from tests.protocol.watching import Watching, bodies

COUNT = 5
MESSAGE = b"\x00\x53\x77\xa1\x01"


def dealt(*, credit: int = COUNT) -> tuple[Watching, list[Deliver]]:
    """A receiver with credit, and the deliveries to it that the engine has dealt and the gateway has not seen."""
    peer = Watching()
    peer.say(Attach(name="r", handle=0, role=True, source=Source(address="q")))
    peer.flow(credit)
    messages = [MESSAGE + bytes((number,)) for number in b"12345"]
    effects = peer.rig.do(peer.rig.publish(peer.rig.producer(), *messages))
    deliveries = [effect for effect in effects if type(effect) is Deliver]
    assert peer.rig.queue().acquired_count == min(credit, COUNT)
    return peer, deliveries


@pytest.mark.parametrize("credit", [0, 2])
def test_deliveries_beyond_the_credit_go_back(credit: int) -> None:
    """Those within it are sent, the others are available to others, in their old order."""
    peer, deliveries = dealt()
    sent = peer.flow(credit)
    peer.gateway.carry_out(deliveries)
    sent += peer.settle()
    assert [body[-1:] for body in bodies(sent)] == [b"1", b"2"][:credit]
    queue = peer.rig.queue()
    assert (queue.acquired_count, queue.available) == (credit, COUNT - credit)
    rest = peer.flow(COUNT, count=credit)
    assert [body[-1:] for body in bodies(rest)] == [b"1", b"2", b"3", b"4", b"5"][credit:]


def test_a_backlog_behind_a_closed_window_stays_until_the_credit_goes() -> None:
    """The window opens again, so the backlog keeps its place; without credit it goes back."""
    peer, deliveries = dealt()
    peer.flow(COUNT, incoming_window=0)
    peer.gateway.carry_out(deliveries)
    assert bodies(peer.settle()) == []
    assert peer.rig.queue().acquired_count == COUNT
    peer.flow(3, incoming_window=0)
    assert peer.rig.queue().acquired_count == 3
    windows = {"next_incoming_id": 0, "next_outgoing_id": FIRST_ID, "outgoing_window": 1000}
    said = peer.give(Wire.frame(Flow(**windows, incoming_window=100)))
    assert [body[-1:] for body in bodies(said)] == [b"1", b"2", b"3"]


def test_a_drain_returns_what_it_cannot_send() -> None:
    """A receiver that drains and gets its answer holds nothing that it was not sent."""
    peer, deliveries = dealt()
    peer.flow(0, drain=True)
    peer.gateway.carry_out(deliveries)
    peer.settle()
    assert peer.rig.queue().available == COUNT


def test_the_last_delivery_of_a_drain_is_followed_by_its_answer() -> None:
    """It uses up the credit, so the engine has nothing more to say."""
    peer, deliveries = dealt()
    (link,) = peer.peer._links.consumers.values()
    link.link.drain = True
    peer.gateway.carry_out(deliveries)
    said = [performative for _, performative, _ in cut(b"".join(map(bytes, peer.peer.connection.take_output())))]
    assert [type(each) for each in said] == [Transfer] * COUNT + [Flow]
    assert (said[-1].drain, said[-1].link_credit, said[-1].delivery_count) == (True, 0, COUNT)


def test_a_backlog_larger_than_the_window_is_sent_in_part() -> None:
    """As much of a run as the window takes; the rest keeps its place, and the last message its run of one."""
    peer, deliveries = dealt()
    peer.flow(COUNT, incoming_window=0)
    peer.gateway.carry_out(deliveries)
    windows = {"next_outgoing_id": FIRST_ID, "outgoing_window": 1000}
    seen = 0
    for window in (2, 1, 2):
        said = peer.give(Wire.frame(Flow(**windows, next_incoming_id=seen, incoming_window=window)))
        assert [body[-1:] for body in bodies(said)] == [b"%d" % (number + 1) for number in range(seen, seen + window)]
        seen += window
        (link,) = peer.peer._links.consumers.values()
        assert link.backlog_count == COUNT - seen
    assert peer.rig.queue().acquired_count == COUNT


def received() -> Watching:
    """A receiver of five deliveries, none of which is settled."""
    peer, deliveries = dealt()
    peer.gateway.carry_out(deliveries)
    assert len(bodies(peer.settle())) == COUNT
    return peer


@pytest.mark.parametrize(
    ("state", "settled", "expected"),
    [
        (Accepted(), True, (0, 0, 0)),
        (Accepted(), False, (0, 0, 1)),
        (Released(), True, (0, 2, 0)),
        (Released(), False, (0, 2, 1)),
        (Modified(delivery_failed=True), True, (0, 2, 0)),
        (None, True, (0, 2, 0)),
        (None, False, (2, 0, 0)),
        (Received(section_number=0, section_offset=0), True, (0, 2, 0)),
        (Received(section_number=0, section_offset=0), False, (2, 0, 0)),
    ],
)
def test_an_outcome_is_applied_and_answered_if_the_receiver_waits(
    state: DeliveryState | None, settled: bool, expected: tuple[int, int, int]
) -> None:
    """Two of five have it: how many are still acquired, how many are available, and how many answers come."""
    peer = received()
    said = peer.say(Disposition(role=True, first=0, last=1, settled=settled, state=state))
    queue = peer.rig.queue()
    answers = [each for each in said if isinstance(each, Disposition)]
    assert (queue.acquired_count - 3, queue.available, len(answers)) == expected
    for answer in answers:
        assert (answer.role, answer.first, answer.last, answer.settled) == (False, 0, 1, True)
        assert answer.state == state


def test_a_settlement_without_a_state_has_the_outcome_of_its_source() -> None:
    """Accepted here: the messages leave the queue."""
    peer = Watching()
    source = Source(address="q", default_outcome=Accepted())
    peer.say(Attach(name="r", handle=0, role=True, source=source))
    peer.rig.do(peer.rig.publish(peer.rig.producer(), MESSAGE + b"1", MESSAGE + b"2"))
    assert len(bodies(peer.flow(2))) == 2
    peer.say(Disposition(role=True, first=0, last=0, settled=True))
    peer.say(Disposition(role=True, first=1, last=1, settled=True, state=Received(section_number=0, section_offset=0)))
    queue = peer.rig.queue()
    assert (queue.acquired_count, queue.available) == (0, 0)


def test_a_rejection_is_answered_without_its_error() -> None:
    """An error would say that the outcome was not applied."""
    peer = received()
    error = Error(condition="my:error", description="no")
    said = peer.say(Disposition(role=True, first=0, last=1, settled=False, state=Rejected(error=error)))
    (answer,) = [each for each in said if isinstance(each, Disposition)]
    assert (answer.state, answer.settled) == (Rejected(), True)


@pytest.mark.parametrize(
    ("entry", "header"),
    [
        (None, None),
        (Entry(), None),
        (Entry(count=2), Header(delivery_count=2)),
    ],
)
def test_a_message_that_was_delivered_before_says_so(entry: Entry | None, header: Header | None) -> None:
    """By its header; one without a count or annotations is sent as it is stored."""
    body = MESSAGE + b"1"
    sent = redelivered(body, entry)
    assert (sent is body) is (header is None)
    assert decode_message(sent).header == header


def test_annotations_of_a_receiver_come_with_the_next_delivery() -> None:
    """Also where no delivery has failed."""
    annotations = ((b"\xa3\x03x-a", b"\xa1\x011"),)
    sent = decode_message(redelivered(MESSAGE + b"1", Entry(annotations=annotations)))
    assert sent.message_annotations == {"x-a": "1"}


def test_a_delivery_says_what_is_left_of_its_time_to_live() -> None:
    """At least a millisecond; without a clock it stays, and what has come from another queue has none."""
    message = Message(header=Header(ttl=5000, durable=True), body=(Data(b"1"),)).encode()
    for entry, now_us, ttl in (
        (Entry(expires_us=9_000_000), 4_500_000, 4500),
        (Entry(expires_us=9_000_000), 9_500_000, 1),
        (Entry(expires_us=9_000_000, count=1), 0, 5000),
        (Entry(origin=7), 4_500_000, None),
        (Entry(count=2), 4_500_000, 5000),
    ):
        header = decode_message(redelivered(message, entry, now_us)).header
        assert header is not None
        assert (header.ttl, header.durable) == (ttl, True)


def test_a_dead_letter_says_why_it_is_one() -> None:
    """In message annotations, encoded as the spec has them; what its receivers have added stays."""
    marks = dead_letter_marks(None, MoveReason.REJECTED, "orders", 3, 1_700_000_000_000_000, "app:bad: " + "x" * 300)
    marks = dead_letter_marks(marks, MoveReason.DELIVERY_COUNT, "later", 4, 1_700_000_000_001_000, "").redriven()
    entry = Entry(annotations=((b"\xa3\x03x-a", b"\xa1\x011"),), marks=marks)
    sent = decode_message(redelivered(MESSAGE + b"1", entry))
    assert sent.message_annotations == {
        "x-a": "1",
        "x-opt-dead-letter-reason": "delivery-count",
        "x-opt-deadletter-source": "later",
        "x-opt-dead-letter-first-source": "orders",
        "x-opt-dead-letter-time": 1_700_000_000_001,
        "x-opt-dead-letter-count": 2,
        "x-opt-redrive-count": 1,
    }
    first = dead_letter_marks(None, MoveReason.REJECTED, "orders", 3, 5_000, "app:bad: " + "x" * 300)
    told = decode_message(redelivered(MESSAGE + b"1", Entry(marks=first))).message_annotations
    assert told is not None
    assert told["x-opt-dead-letter-description"] == "app:bad: " + "x" * 300
    assert type(told["x-opt-dead-letter-reason"]) is Symbol


def test_a_link_goes_on_when_another_makes_room_in_its_session() -> None:
    """The session holds two unsettled deliveries, and the first link has both."""
    peer = Watching(connection=ConnectionLimits(unsettled_max=2))
    for handle, address in enumerate(("q", "r")):
        peer.say(Attach(name=address, handle=handle, role=True, source=Source(address=address)))
        peer.rig.do(peer.rig.publish(peer.rig.producer(address), *[MESSAGE + address.encode()] * 2))
    assert bodies(peer.flow(9)) == [MESSAGE + b"q"] * 2
    assert bodies(peer.flow(9, handle=1)) == []
    said = peer.give(Wire.frame(Disposition(role=True, first=0, last=0, settled=True, state=Accepted())))
    assert bodies(said) == [MESSAGE + b"r"]


def test_a_settlement_that_its_receiver_has_settled_waits_for_others() -> None:
    """No peer waits for it; one whose receiver waits for the answer is decided at once."""
    for settled, due in ((True, LATER), (False, SOON)):
        peer = received()
        frame = Wire.frame(Disposition(role=True, first=0, last=0, settled=settled, state=Accepted()))
        peer.peer.connection.receive(frame, 0)
        peer.peer.handle_events()
        assert (peer.rig.due >= SOON) is (due == SOON)


@pytest.mark.parametrize(("closed", "count"), [(True, 1), (False, 2)])
def test_a_close_does_not_count_a_failure_twice(*, closed: bool, count: int) -> None:
    """The broker was quicker with the message than the client with its close: it counts once. A detach counts both."""
    peer = received()
    peer.say(Disposition(role=True, first=0, last=0, settled=True, state=Modified(delivery_failed=True)))
    again = peer.flow(COUNT, count=COUNT)
    assert [body[-1:] for body in bodies(again)] == [b"1"]
    word = min(peer.rig.queue().held_by(next(iter(peer.peer._links.consumers.values())).consumer))
    # A detached link keeps its deliveries until its session ends.
    peer.say(Detach(handle=0, closed=closed), End())
    queue = peer.rig.queue()
    assert (queue.acquired_count, queue.available) == (0, COUNT)
    assert queue.entries[word >> 16].count == count


def test_a_message_that_succeeds_the_second_time_is_gone() -> None:
    """A close after it gives back the others alone."""
    peer = received()
    (link,) = peer.peer._links.consumers.values()
    peer.say(Disposition(role=True, first=0, last=0, settled=True, state=Modified(delivery_failed=True)))
    peer.flow(COUNT, count=COUNT)
    assert link._failed is not None
    assert len(link._failed.again) == 1
    peer.say(Disposition(role=True, first=COUNT, last=COUNT, settled=True, state=Accepted()))
    assert not link._failed.again
    peer.say(Detach(handle=0, closed=True))
    assert peer.rig.queue().available == COUNT - 1


def _offering(credit: int, *, granted: int, takes: bool = True) -> ConsumerLink:
    """Return a link at the engine's credit `granted`, whose peer has `credit` left after what it takes."""
    session = SimpleNamespace(is_full=False, await_room=lambda: None)
    sender: Any = SimpleNamespace(credit=credit, drain=False, offer_run=lambda *_: takes, session=session)
    peer: Any = SimpleNamespace(gateway=SimpleNamespace(limits=ServerLimits(grant_messages=100), traffic=Traffic()))
    terms: Any = None
    link = ConsumerLink(peer, sender, terms)
    link.granted = granted
    return link


def _run(count: int) -> Deliver:
    deliver = Deliver(1, None, 1, tuple(range(count)), None)
    deliver.bodies = [MESSAGE] * count
    return deliver


@pytest.mark.parametrize(
    ("granted", "credit", "expected"),
    [(60, 1000, False), (59, 1000, True), (59, 49, False), (59, 50, True), (10, 0, False), (10, 1, True)],
)
def test_a_new_grant_is_needed_when_half_of_the_last_one_is_used(granted: int, credit: int, *, expected: bool) -> None:
    """Ten deliveries of it are sent now. Credit that the engine has already is worth no grant."""
    link = _offering(credit, granted=granted)
    assert link.deliver(_run(10)) is expected
    assert (link.granted, link.backlog_count) == (granted - 10, 0)


def test_what_cannot_be_sent_needs_a_new_grant() -> None:
    """The backlog counts against it. What comes after it waits behind it, even if it could be sent."""
    link = _offering(1000, granted=100, takes=False)
    assert link.deliver(_run(10)) is True
    link.link.offer_run = lambda *_: True  # type: ignore[method-assign]
    assert link.deliver(_run(5)) is True
    assert (link.granted, link.backlog_count, link.backlog_bytes) == (100, 15, 15 * len(MESSAGE))


def test_a_link_that_has_ended_and_an_empty_run_need_nothing() -> None:
    """A run is empty if all of its messages are damaged."""
    link = _offering(1000, granted=10)
    assert link.deliver(_run(0)) is False
    link.is_open = False
    assert link.deliver(_run(5)) is False
    assert (link.granted, link.backlog_count) == (10, 0)


@pytest.mark.parametrize(
    ("is_open", "consumer", "is_paused", "expected"),
    [(True, 7, False, [(7, 50)]), (False, 7, False, []), (True, 0, False, []), (True, 7, True, [])],
)
def test_credit_goes_to_the_engine_for_an_attached_consumer_alone(
    is_open: bool, consumer: int, is_paused: bool, expected: list[tuple[int, int]]
) -> None:
    """A flow may come before the answer to the attach; then the engine knows no consumer of the link."""
    link = _offering(50, granted=0)
    granted: list[tuple[int, int]] = []
    engine = SimpleNamespace(set_credit=lambda consumer, credit, **_: granted.append((consumer, credit)))
    link.peer.gateway.engine, link.peer.is_paused = engine, is_paused  # type: ignore[misc, assignment]
    link.link.sendable = 50  # type: ignore[misc]
    assert link.consumer == 0
    link.is_open, link.consumer = is_open, consumer
    link.top_up()
    assert granted == expected
    link.message_bytes = 2 * ServerLimits().grant_bytes
    link.top_up()
    # However large its messages are, one is granted.
    assert granted[len(expected) :] == [(consumer, 1) for consumer, _ in expected]


def test_large_messages_lower_the_grant_at_once_and_small_ones_slowly() -> None:
    """An eighth with each run: one small message between large ones is no reason for a large grant."""
    link = _offering(1000, granted=1000)
    sizes = []
    for size in (800, 100, 100, 2000):
        run = _run(1)
        run.bodies = [bytes(size)]
        link.deliver(run)
        sizes.append(link.message_bytes)
    assert sizes == [800, 700, 612, 2000]
