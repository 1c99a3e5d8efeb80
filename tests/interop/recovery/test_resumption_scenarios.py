"""The least that a client may say to resume a link, over TCP: a new handle, plain termini, the smallest frames.

Rule. Each link is detached and attached again in one session, for which the default expiry policy keeps what is
      unsettled.
"""

from collections.abc import Iterator
from typing import Any

import pytest
from proton import Message

from ambermq.protocol.amqp10.performatives.classes import Accepted, Attach, Close, Detach, Disposition, Flow, Transfer
from ambermq.tools.broker.child_broker import ChildBroker
from tests.interop.proton_peer import ProtonPeer
from tests.protocol.tcp import TcpWire

FRAME_BYTES = 512
"""The smallest max-frame-size: a map of `MANY` tags exceeds it."""
MANY = 100
MESSAGE = b"\x00\x53\x77\xa1\x04text"
TAG = b"testDeliveryTag"
SECOND: dict[str, Any] = {"rcv_settle_mode": 1}


@pytest.fixture
def wire(broker: ChildBroker, queue: str) -> Iterator[TcpWire]:
    """A session of a peer that takes small frames, and no transfer before it says so."""
    windows = {"next_outgoing_id": 0, "incoming_window": 0, "outgoing_window": 0}
    with TcpWire.begun(broker.url, container=queue, begin=windows, max_frame_size=FRAME_BYTES) as wire:
        yield wire


def again(wire: TcpWire, queue: str, *, role: bool, **fields: Any) -> Attach:
    """Detach the link, and attach it by another handle."""
    wire.say(Detach(handle=0))
    assert not wire.expect(Detach).closed
    answer = wire.attach(queue, role=role, handle=1, **fields)
    assert answer.incomplete_unsettled == fields.get("incomplete_unsettled", False)
    return answer


def tags(answer: Attach) -> set[bytes]:
    """The tags of the broker's map."""
    return {bytes(tag) for tag in answer.unsettled or {}}


def post(wire: TcpWire, tag: bytes, number: int, payload: bytes = MESSAGE, **fields: Any) -> None:
    """Send a frame of a message."""
    wire.say(Transfer(**{"handle": 0, "delivery_id": number, "delivery_tag": tag, **fields}), payload=payload)


def post_many(wire: TcpWire, queue: str) -> set[bytes]:
    """Send `MANY` messages in mode second, and settle none; return their tags."""
    assert wire.attach(queue, role=False, **SECOND).rcv_settle_mode == 1
    wire.expect(Flow)
    sent = {b"%d" % number for number in range(MANY)}
    for number in range(MANY):
        post(wire, b"%d" % number, number)
    known = 0
    while known < MANY:
        said = wire.expect(Disposition)
        assert (said.role, said.settled) == (True, False)
        known += (said.first if said.last is None else said.last) - said.first + 1
    return sent


def take(wire: TcpWire, number: int, *, handle: int = 0, window: int = 1) -> tuple[Transfer, bytes]:
    """Grant a credit, and return the frame that comes; it is a whole message."""
    windows = {"next_incoming_id": number, "incoming_window": window, "next_outgoing_id": 0, "outgoing_window": 0}
    wire.flow(handle=handle, link_credit=window, **windows)
    transfer, payload = wire.expect_frame(Transfer)
    assert not transfer.more
    return transfer, payload


def test_the_map_has_the_outcome_of_a_stored_message(wire: TcpWire, queue: str) -> None:
    """The sender has not settled it."""
    wire.attach(queue, role=False, **SECOND)
    wire.expect(Flow)
    post(wire, TAG, 0)
    said = wire.expect(Disposition)
    assert (said.role, said.settled, type(said.state)) == (True, False, Accepted)
    answer = again(wire, queue, role=False, unsettled={TAG: None}, **SECOND)
    assert answer.target is not None
    assert tags(answer) == {TAG}
    assert [state.descriptor for state in (answer.unsettled or {}).values()] == [Accepted.CODE]


def test_the_map_of_a_sender_is_cut_to_a_frame(wire: TcpWire, queue: str) -> None:
    """It names some of the tags, and no other one."""
    sent = post_many(wire, queue)
    answer = again(wire, queue, role=False, unsettled={b"0": None}, incomplete_unsettled=True, **SECOND)
    assert answer.target is not None
    assert b"0" in tags(answer) < sent


def test_a_new_delivery_behind_an_incomplete_map_ends_the_link(wire: TcpWire, queue: str) -> None:
    """With illegal-state (transport, 2.7.3); the session goes on."""
    post_many(wire, queue)
    again(wire, queue, role=False, unsettled={b"0": None}, incomplete_unsettled=True, **SECOND)
    post(wire, b"new", MANY, handle=1)
    error = wire.expect(Detach).error
    assert error is not None
    assert str(error.condition) == "amqp:illegal-state"
    assert wire.attach(queue, role=True, handle=2, name="other").source is not None


def test_the_map_of_a_receiver_is_cut_to_a_frame(wire: TcpWire, peer: ProtonPeer, queue: str) -> None:
    """Of a receiver in mode second, too. Only what it names is sent; with a whole map the rest comes."""
    peer.sender(queue).send(*[Message(str(number)) for number in range(MANY)])
    modes: dict[str, Any] = {"snd_settle_mode": 0, **SECOND}
    answer = wire.attach(queue, role=True, **modes)
    assert (answer.snd_settle_mode, answer.rcv_settle_mode) == (0, 1)
    first, _ = take(wire, 0, window=1 << 30)
    held = [bytes(one.delivery_tag or b"") for one in (first, *(wire.expect(Transfer) for _ in range(MANY - 1)))]
    answer = again(wire, queue, role=True, unsettled={held[0]: None}, incomplete_unsettled=True, **modes)
    assert held[0] in tags(answer) < set(held)
    resumed, payload = take(wire, MANY, handle=1, window=1 << 30)
    assert (bytes(resumed.delivery_tag or b""), resumed.resume, resumed.settled) == (held[0], True, False)
    assert payload.endswith(b"0")
    wire.say(Disposition(role=True, first=resumed.delivery_id or 0, state=Accepted()))
    assert wire.expect(Disposition).settled
    wire.say(Detach(handle=1))
    # What was not named did not come before this answer.
    assert isinstance((wire.next() or (None,))[0], Detach)
    wire.attach(queue, role=True, unsettled={}, **modes)
    fresh, _ = take(wire, MANY + 1, window=1 << 30)
    rest = [bytes(one.delivery_tag or b"") for one in (fresh, *(wire.expect(Transfer) for _ in range(MANY - 2)))]
    assert rest == held[1:]


@pytest.mark.parametrize("is_accepted", [True, False])
def test_a_receiver_settles_what_it_holds(wire: TcpWire, peer: ProtonPeer, queue: str, is_accepted: bool) -> None:
    """It names an outcome, or gets the message again, under its tag. Then the message is gone."""
    sender = peer.sender(queue)
    sender.send(Message("text"))
    assert wire.attach(queue, role=True, snd_settle_mode=0).snd_settle_mode == 0
    transfer, _ = take(wire, 0)
    tag = bytes(transfer.delivery_tag or b"")
    state = Accepted() if is_accepted else None
    assert tags(again(wire, queue, role=True, snd_settle_mode=0, unsettled={tag: state})) == {tag}
    resumed, payload = take(wire, 1, handle=1)
    assert (bytes(resumed.delivery_tag or b""), resumed.resume, resumed.settled) == (tag, True, is_accepted)
    assert payload.endswith(b"" if is_accepted else b"text")
    assert bool(payload) != is_accepted
    if not is_accepted:
        wire.say(Disposition(role=True, first=resumed.delivery_id or 0, settled=True, state=Accepted()))
    wire.say(Close())
    wire.expect(Close)
    sender.send(Message("later"))
    assert [one.message.body for one in peer.receiver(queue, credit=2).wait(1)] == ["later"]


def test_a_receiver_that_has_settled_all_resumes_an_empty_map(wire: TcpWire, peer: ProtonPeer, queue: str) -> None:
    """Nothing is in ours, and new messages follow."""
    sender = peer.sender(queue)
    sender.send(Message("text"))
    wire.attach(queue, role=True)
    transfer, _ = take(wire, 0)
    wire.say(Disposition(role=True, first=transfer.delivery_id or 0, settled=True, state=Accepted()))
    assert again(wire, queue, role=True, unsettled={}).unsettled == {}
    sender.send(Message("later"))
    fresh, payload = take(wire, 1, handle=1)
    assert not fresh.resume
    assert payload.endswith(b"later")


def test_a_message_in_two_frames_is_resumed_from_its_beginning(wire: TcpWire, peer: ProtonPeer, queue: str) -> None:
    """The detach cut it; the resumed transfers have its old delivery-id. It is stored once."""
    wire.attach(queue, role=False)
    wire.expect(Flow)
    post(wire, TAG, 0, MESSAGE[:5], more=True)
    assert tags(again(wire, queue, role=False, unsettled={TAG: None})) == {TAG}
    post(wire, TAG, 0, MESSAGE[:5], handle=1, resume=True, more=True)
    post(wire, TAG, 0, MESSAGE[5:], handle=1, resume=True)
    said = wire.expect(Disposition)
    assert (said.first, said.settled, type(said.state)) == (0, True, Accepted)
    peer.sender(queue).send(Message("later"))
    assert [one.message.body for one in peer.receiver(queue, credit=3).wait(2)] == ["text", "later"]
