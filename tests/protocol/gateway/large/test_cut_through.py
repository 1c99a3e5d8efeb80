"""Cut-through, as frames: the delivery of a large message begins while the message arrives."""

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ambermq.engine.commands import CutThrough, DeclareQueue, DeleteQueue, Upload
from ambermq.engine.effects import Answered
from ambermq.engine.settings.queue_settings import Settings
from ambermq.protocol.amqp10.message.message import Data, Message, decode_message
from ambermq.protocol.amqp10.performatives.classes import (
    Accepted,
    Attach,
    Detach,
    Disposition,
    Flow,
    Header,
    Modified,
    Properties,
    Rejected,
    Released,
    Source,
    Target,
    TransactionalState,
    Transfer,
)
from ambermq.protocol.amqp10.spec import SenderSettleMode
from ambermq.protocol.gateway.large.arriving_message import ArrivingMessage
from ambermq.protocol.gateway.links.routing_fields import RoutingFields
from tests.engine.rig import Rig
from tests.protocol.gateway.large.test_large_messages import CONFIG, FRAME, PIECE, Peer, message, outcomes
from tests.protocol.peers import FIRST_ID, Wire
from tests.protocol.watching import bodies

Said = list[tuple[Any, bytes]]


def rig_of(**values: Any) -> Rig:
    rig = Rig(config=CONFIG, fields_of=RoutingFields)
    rig.do(DeclareQueue("key", "q", Settings(**{"cut_through": True, **values})))
    return rig


def transfers(said: Said) -> list[Transfer]:
    return [one for one, _ in said if isinstance(one, Transfer)]


def body_of(body: bytes) -> bytes:
    (data,) = decode_message(body).body
    assert isinstance(data, Data)
    return bytes(data.value)


def payload(said: Said) -> bytes:
    return b"".join(part for one, part in said if isinstance(one, Transfer))


class Through(Peer):
    """A peer that sends to a queue with cut-through, and receives from it."""

    def __init__(self, *, credit: int = 10, **options: Any) -> None:
        super().__init__(options.pop("rig", None) or rig_of(), **options)
        self.sender()
        self.receiver(credit=credit)

    def settle_delivery(self, delivery: Transfer, state: Any, *, settled: bool = True) -> Said:
        """Return what comes after an outcome."""
        first = delivery.delivery_id
        return self.give(Wire.frame(Disposition(role=True, first=first, settled=settled, state=state)))

    def begun(self, size: int = 9500) -> tuple[list[bytes], Said]:
        """Send half of a message; return the other frames, and what came."""
        frames = self.frames(message(1, size))
        said = self.give(b"".join(frames[: len(frames) // 2]))
        assert payload(said), "the delivery has begun"
        return frames[len(frames) // 2 :], said


def test_the_first_frames_come_before_the_last_piece_is_sent() -> None:
    """Each piece follows as it is durable; the last frame comes with the acceptance; the bytes are the same."""
    peer, body = Through(), message(1, 9500)
    said: Said = []
    for count, frame in enumerate(peer.frames(body), 1):
        said += peer.give(frame)
        sent = min(count * FRAME, len(body))
        assert len(payload(said)) in (sent, max(0, (sent - 1) // PIECE * PIECE))
    assert payload(said) == body
    assert [one.more for one in transfers(said)] == [True] * (len(transfers(said)) - 1) + [False]
    assert outcomes(said) == [Accepted]
    (first, *others) = transfers(said)
    assert {one.delivery_tag for one in others} == {None}
    peer.settle_delivery(first, Accepted())
    assert peer.rig.queue().depth == 0
    assert peer.gateway.traffic.messages_cut_through == 1
    peer.rig.producer("other")
    peer.rig.next_life()


def test_a_piece_may_be_sent_when_it_is_durable() -> None:
    """And the last one when the message is published."""
    message = ArrivingMessage(CutThrough(1, 2, "link", Upload(b"", 7, [7, 8, 12])))
    for durable_end, expected in ((7, []), (8, [7]), (12, [7, 8]), (13, [7, 8, 12])):
        message.follow(durable_end)
        assert (message.offsets, message.is_whole) == (expected, False)
    message.complete(20 << 16 | 1)
    assert (message.offsets, message.is_whole) == ([7, 8, 12, 20], True)


def test_a_settled_delivery_counts_as_accepted() -> None:
    """When its message is published."""
    peer = Peer(rig_of())
    peer.sender()
    source, mode = Source(address="q"), SenderSettleMode.SETTLED
    peer.say(Attach(name="d", handle=5, role=True, source=source, target=Target(), snd_settle_mode=mode))
    peer.flow(10, handle=5)
    body = message(1, 9500)
    said = [one for frame in peer.frames(body) for one in peer.give(frame)]
    assert payload(said) == body
    assert transfers(said)[0].settled
    assert peer.rig.queue().depth == 0
    assert peer.rig.queue().accepted == 1


@pytest.mark.parametrize("end", ["abort", "detach", "deleted", "large", "malformed", "full"])
def test_the_delivery_of_a_message_that_is_not_published_is_aborted(end: str) -> None:
    """Nothing of it is on the queue, its credit is used, and the next message comes."""
    limits = {"message_bytes_max": 6000} if end == "large" else {}
    peer = Through(rig=rig_of(messages_max=1 if end == "full" else 0, **limits), credit=1 if end == "full" else 10)
    rest, _ = peer.begun()
    if end == "abort":
        more = peer.give(Wire.frame(Transfer(handle=0, more=False, aborted=True)))
    elif end == "detach":
        more = peer.give(Wire.frame(Detach(handle=0, closed=True)))
    elif end == "deleted":
        peer.gateway.carry_out([one for one in peer.rig.do(DeleteQueue("key", "q")) if type(one) is not Answered])
        more = peer.settle()
        assert [one.closed for one, _ in more if isinstance(one, Detach)] == [True]
        assert outcomes(peer.give(b"".join(rest))) == [Released]
        assert not peer.rig.loop.state.uploads
        return
    elif end == "malformed":
        more = peer.give(b"".join(rest[:-1]) + Wire.frame(Transfer(handle=0, more=False), b"\x01\x02"))
    else:
        if end == "full":
            peer.sender(1)
            peer.give(b"".join(peer.frames(message(2, 10), handle=1)))
        more = peer.give(b"".join(rest))
    assert transfers(more)[-1].aborted
    assert Rejected in outcomes(more) or end in ("abort", "detach")
    assert not peer.rig.loop.state.uploads
    assert peer.rig.queue().depth == (1 if end == "full" else 0)
    assert peer.gateway.traffic.messages_cut_through == 0
    peer.sender(2)
    if end != "full":
        assert outcomes(peer.give(b"".join(peer.frames(message(3, 10), handle=2)))) == [Accepted]
    again = peer.flow(1, handle=5, count=1)
    assert end != "full" or bodies(again) == [message(2, 10)]
    assert peer.rig.queue().available == 0
    peer.rig.producer("other")
    peer.rig.next_life()


def test_later_messages_come_behind_it() -> None:
    """With one receiver they wait until it is complete; frames of two deliveries never mix."""
    peer = Through()
    rest, said = peer.begun()
    peer.sender(1)
    assert transfers(peer.give(b"".join(peer.frames(message(2, 10), handle=1)))) == []
    said += peer.give(b"".join(rest))
    assert bodies(said) == [message(1, 9500), message(2, 10)]


def test_another_receiver_gets_the_later_ones_meanwhile() -> None:
    """One receiver waits for the message that arrives, the other does not."""
    peer = Through()
    peer.receiver(6)
    rest, said = peer.begun()
    peer.sender(1)
    small = peer.give(b"".join(peer.frames(message(2, 10), handle=1)))
    assert bodies(small) == [message(2, 10)]
    assert {one.handle for one in transfers(small)} != {transfers(said)[0].handle}
    said += peer.give(b"".join(rest))
    assert bodies(said) == [message(1, 9500)]


@pytest.mark.parametrize("is_settled", [False, True])
@pytest.mark.parametrize(
    "state", [Accepted(), Modified(delivery_failed=True), Rejected()], ids=lambda one: type(one).__name__
)
def test_an_outcome_that_comes_early_is_applied_when_the_message_is_published(state: Any, *, is_settled: bool) -> None:
    """The rest is aborted, as in the middle of any large message; the next message need not wait."""
    peer = Through()
    rest, said = peer.begun()
    more = peer.settle_delivery(transfers(said)[0], state, settled=is_settled)
    assert transfers(more)[-1].aborted
    peer.sender(1)
    assert bodies(peer.give(b"".join(peer.frames(message(2, 10), handle=1)))) == [message(2, 10)]
    assert peer.rig.queue().acquired_count == 1
    more = peer.give(b"".join(rest))
    assert outcomes(more) == [Accepted]
    counters, queue = peer.rig.queue().counters, peer.rig.queue()
    if isinstance(state, Modified):
        assert counters.failed == 1
        (again,) = bodies(more)
        assert decode_message(again).header == Header(durable=True, delivery_count=1)
    else:
        assert bodies(more) == []
        assert (queue.accepted, counters.rejected) == (
            int(isinstance(state, Accepted)),
            int(isinstance(state, Rejected)),
        )
        assert queue.depth == 1
    peer.rig.producer("other")
    peer.rig.next_life()


def test_an_early_outcome_in_a_transaction_is_void() -> None:
    """No transaction of this name is open, so nothing is settled by it: the message comes again, as a whole."""
    peer = Through()
    rest, said = peer.begun()
    state = TransactionalState(txn_id=b"none", outcome=Accepted())
    more = peer.settle_delivery(transfers(said)[0], state, settled=True)
    assert transfers(more)[-1].aborted
    assert bodies(peer.give(b"".join(rest))) == [message(1, 9500)]


def test_outcomes_name_the_messages_that_they_are_of() -> None:
    """One disposition over a message before it, one that was cut through, and one behind it."""
    peer = Through()
    peer.sender(1)
    said = peer.give(b"".join(peer.frames(message(1, 10), handle=1)))
    said += peer.give(b"".join(peer.frames(message(2, 9500))))
    said += peer.give(b"".join(peer.frames(message(3, 10), handle=1)))
    assert len(bodies(said)) == 3
    first = transfers(said)[0].delivery_id
    assert first is not None
    peer.say(Disposition(role=True, first=first, last=first + 2, settled=True, state=Accepted()))
    assert peer.rig.queue().depth == 0
    assert peer.rig.queue().accepted == 3


def test_an_outcome_over_the_message_that_arrives_and_those_before() -> None:
    """Those before have it at once."""
    peer = Through()
    peer.sender(1)
    said = peer.give(b"".join(peer.frames(message(1, 10), handle=1)))
    rest, _ = peer.begun()
    first = transfers(said)[0].delivery_id
    assert first is not None
    peer.say(Disposition(role=True, first=first, last=first + 1, settled=True, state=Accepted()))
    assert peer.rig.queue().depth == 0
    peer.give(b"".join(rest))
    assert peer.rig.queue().depth == 0
    assert peer.rig.queue().accepted == 2


def test_a_detach_of_the_receiver_leaves_the_message_to_others() -> None:
    """It is no failed delivery, since the message was not on the queue."""
    peer = Through()
    rest, _ = peer.begun()
    peer.say(Detach(handle=5, closed=True))
    assert outcomes(peer.give(b"".join(rest))) == [Accepted]
    assert bodies(peer.receiver(6)) == [message(1, 9500)]
    assert peer.rig.queue().counters.failed == 0


def test_a_detach_after_the_publish_is_a_failed_delivery() -> None:
    """As for any message that was sent and not settled, also if the window has held back some frames."""
    peer = Through(rig=rig_of())
    rest, _ = peer.begun()
    peer.give(b"".join(rest))
    peer.say(Detach(handle=5, closed=True))
    (again,) = bodies(peer.receiver(6))
    assert decode_message(again).header == Header(durable=True, delivery_count=1)
    assert peer.rig.queue().counters.failed == 1


def test_a_closed_window_holds_the_receiver_and_not_the_sender() -> None:
    """The message is published and accepted; its frames follow with the window."""
    peer = Peer(rig_of())
    peer.sender()
    peer.receiver(window=3)
    body = message(1, 9500)
    said = peer.give(b"".join(peer.frames(body)))
    assert outcomes(said) == [Accepted]
    count = len(transfers(said))
    assert 0 < count <= 3
    while count < 10:
        window = Flow(next_incoming_id=count, incoming_window=2, next_outgoing_id=FIRST_ID, outgoing_window=100)
        more = peer.give(Wire.frame(window))
        assert 0 < len(transfers(more)) <= 2
        count += len(transfers(more))
        said += more
    assert payload(said) == body


def test_a_drain_is_answered_although_a_message_arrives() -> None:
    """The rest of the credit is returned; the message uses one."""
    peer = Through()
    rest, said = peer.begun()
    drained = [one for one, _ in peer.flow(10, handle=5, drain=True) if isinstance(one, Flow)]
    assert [(one.link_credit, one.drain, one.delivery_count) for one in drained] == [(0, True, 10)]
    assert payload(said) + payload(peer.give(b"".join(rest))) == message(1, 9500)


def test_a_receiver_that_takes_its_credit_back_leaves_the_message_to_the_queue() -> None:
    """Before its first frame: here the window of its session was closed."""
    peer = Peer(rig_of())
    peer.sender()
    peer.receiver(window=1)
    peer.sender(1)
    assert len(bodies(peer.give(b"".join(peer.frames(message(2, 10), handle=1))))) == 1
    peer.flow(9, handle=5, count=1, incoming_window=1, next_incoming_id=1)
    # Another link of the session uses up the window between the grant and the delivery.
    frames = peer.frames(message(1, 9500))
    peer.peer.connection.receive(b"".join(frames[:-5]), 0)
    peer.peer.handle_events()
    consumer_link = next(iter(peer.gateway.consumers.values()))
    effects = peer.rig.do()
    consumer_link.link.session.windows.remote = 0
    peer.gateway.carry_out(effects)
    assert transfers(peer.settle()) == []
    assert peer.rig.loop.demand.cut_throughs
    peer.flow(0, handle=5, count=1, incoming_window=100, next_incoming_id=1)
    assert not peer.rig.loop.demand.cut_throughs
    assert outcomes(peer.give(b"".join(frames[-5:]))) == [Accepted]
    assert bodies(peer.flow(5, handle=5, count=1, incoming_window=100, next_incoming_id=1)) == [message(1, 9500)]


def test_a_damaged_piece_aborts_the_delivery_and_then_the_message_leaves() -> None:
    """It is found when the piece is read; when the message is published, its next delivery finds it again."""
    peer = Through(credit=10)
    rig, body = peer.rig, message(1, 9500)
    frames = peer.frames(body)
    peer.say(Flow(next_incoming_id=0, incoming_window=1, next_outgoing_id=FIRST_ID, outgoing_window=100))
    said = peer.give(b"".join(frames[:28]))
    rig.loop.log.bodies.forget(range(1000))
    rig.damage(body[4100:4150])
    rig.forget_pages()
    said += peer.give(
        Wire.frame(Flow(next_incoming_id=1, incoming_window=99, next_outgoing_id=FIRST_ID, outgoing_window=100))
    )
    assert transfers(said)[-1].aborted
    assert outcomes(peer.give(b"".join(frames[28:]))) == [Accepted]
    assert rig.queue().depth == 0
    assert rig.queue().counters.damaged == 1


@pytest.mark.parametrize(
    ("header", "ttl_ms_max", "expected"),
    [
        (Header(ttl=9000), 0, 9000),
        (Header(ttl=9000), 500, 500),
        (Header(ttl=100), 500, 100),
        (Header(durable=True), 9, None),
    ],
)
def test_its_header_is_that_of_a_first_delivery(header: Header, ttl_ms_max: int, expected: int | None) -> None:
    """The time to live is the shorter one of its own and the queue's."""
    peer = Through(rig=rig_of(message_ttl_ms=ttl_ms_max))
    body = Message(header=header, body=(Data(bytes(5000)),)).encode()
    said = [one for frame in peer.frames(body) for one in peer.give(frame)]
    got = decode_message(payload(said)).header
    assert got is not None
    assert (got.ttl, got.delivery_count, got.durable) == (expected, None, header.durable)
    assert peer.gateway.traffic.messages_cut_through == 1


@pytest.mark.parametrize(
    "made",
    [
        Message(message_annotations={"x-opt-delivery-delay": 5}, body=(Data(bytes(5000)),)),
        Message(properties=Properties(group_id="g"), body=(Data(bytes(5000)),)),
    ],
    ids=("scheduled", "group"),
)
def test_what_its_first_piece_rules_out(made: Message) -> None:
    """It is delivered when it is complete, at its time, to its consumer."""
    peer = Through(rig=rig_of(groups=True))
    frames = peer.frames(made.encode())
    said = [one for frame in frames[:-1] for one in peer.give(frame)]
    assert transfers(said) == []
    peer.give(frames[-1])
    assert peer.gateway.traffic.messages_cut_through == 0


def test_messages_by_the_anonymous_terminus_are_delivered_when_they_are_complete() -> None:
    """Their address is in each of them."""
    peer = Peer(rig_of())
    peer.say(Attach(name="any", handle=0, role=False, source=Source(), target=Target(), initial_delivery_count=0))
    peer.receiver()
    frames = peer.frames(Message(properties=Properties(to="q"), body=(Data(bytes(5000)),)).encode())
    assert transfers(peer.give(b"".join(frames[:-1]))) == []
    assert len(bodies(peer.give(frames[-1]))) == 1


@settings(max_examples=8)
@given(
    plan=st.lists(
        st.tuples(st.integers(0, 2), st.sampled_from(("large", "large", "small", "abort"))),
        max_size=8,
    ),
    order=st.randoms(use_true_random=False),
)
def test_whatever_ends_each_message_comes_whole_once(plan: list[tuple[int, str]], order: random.Random) -> None:
    """Frames of three senders interleave; receivers come and go. What is aborted leaves nothing."""
    rig = rig_of()
    peer = Peer(rig)
    receivers = Peer(rig, gateway=peer.gateway, container="receiver")
    for handle in range(3):
        peer.sender(handle)
    receivers.receiver(5, credit=50)
    plans: list[list[tuple[int, str]]] = [[], [], []]
    for number, (handle, kind) in enumerate(plan):
        plans[handle].append((number, kind))
    ways: list[list[bytes]] = [[], [], []]
    expected = [number for number, (_, kind) in enumerate(plan) if kind != "abort"]
    while handles := [handle for handle in range(3) if plans[handle] or ways[handle]]:
        handle = order.choice(handles)
        if not ways[handle]:
            number, kind = plans[handle].pop(0)
            frames = peer.frames(message(number, 10 if kind == "small" else 4000), handle=handle)
            end = [Wire.frame(Transfer(handle=handle, more=False, aborted=True))]
            ways[handle] = [*frames[:-1], *end] if kind == "abort" else frames
        peer.give(ways[handle].pop(0))
        receivers.settle()
        if order.random() < 0.1:
            receivers.say(Detach(handle=5, closed=True))
            receivers.receiver(5, credit=50)
    assert not rig.loop.state.uploads
    assert not rig.loop.demand.cut_throughs
    assert rig.queue().depth == len(expected)
    receivers.say(Detach(handle=5, closed=True))
    got = [body_of(one) for one in bodies(Peer(rig, gateway=peer.gateway, container="again").receiver(credit=100))]
    assert sorted(got) == sorted(
        body_of(message(number, 10 if plan[number][1] == "small" else 4000)) for number in expected
    )
    rig.producer("other")
    rig.next_life()
