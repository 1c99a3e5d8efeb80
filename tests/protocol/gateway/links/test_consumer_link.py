"""Deliveries that were dealt to a receiver which takes its credit back return to the queue."""

import pytest

from ambermq.engine.effects import Deliver
from ambermq.engine.model.entry import Entry
from ambermq.protocol.amqp10.message.message import decode_message
from ambermq.protocol.amqp10.performatives.classes import (
    Accepted,
    Attach,
    DeliveryState,
    Disposition,
    Error,
    Flow,
    Header,
    Modified,
    Received,
    Rejected,
    Released,
    Source,
)
from ambermq.protocol.gateway.links.consumer_link import redelivered
from tests.protocol.peers import FIRST_ID, Wire
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
        (link,) = peer.peer._consumer_links.values()
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
