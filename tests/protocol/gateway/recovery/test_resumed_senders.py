"""Senders in receiver-settle-mode second resume their links: each message is stored once."""

import pytest

from ambermq.engine.config import EngineConfig
from ambermq.protocol.amqp10.message.message import Data, Message
from ambermq.protocol.amqp10.performatives.base import Composite
from ambermq.protocol.amqp10.performatives.classes import (
    Accepted,
    Attach,
    Detach,
    Disposition,
    End,
    Open,
    Rejected,
    Transfer,
)
from ambermq.protocol.amqp10.serial_number import MASK
from ambermq.protocol.amqp10.types.values import Symbol
from ambermq.protocol.gateway.recovery.second_mode import receiver_settle_mode
from tests.protocol.gateway.recovery.resuming import FOREVER, MESSAGE, Resuming
from tests.protocol.peers import FIRST_ID, Wire


def second(peer: Resuming | None = None, **fields: object) -> Resuming:
    """A sender in mode second."""
    peer = peer or Resuming()
    assert peer.attach(sends=True, rcv_settle_mode=1, **fields).rcv_settle_mode == 1
    return peer


def disposed(said: list[Composite | None]) -> list[tuple[int, bool, type]]:
    """The dispositions among frames: first id, whether they settle, and the outcome."""
    return [(one.first, one.settled, type(one.state)) for one in said if isinstance(one, Disposition)]


def error_of(said: list[Composite | None]) -> str | None:
    """The condition of the detach among frames."""
    return next((str(one.error.condition) for one in said if isinstance(one, Detach) and one.error), None)


def depth(peer: Resuming) -> int:
    return peer.rig.queue().depth


def tags(peer: Resuming) -> list[bytes]:
    return sorted(tag for kept in peer.rig.loop.state.tags.values() for tag in kept)


def test_the_broker_settles_after_the_sender() -> None:
    """It keeps the tag until then."""
    peer = second()
    assert disposed(peer.send(b"a")) == [(FIRST_ID, False, Accepted)]
    assert (depth(peer), tags(peer)) == (1, [b"a"])
    peer.dispose(FIRST_ID, role=False, settled=True, state=Accepted())
    assert tags(peer) == []


def test_a_settled_message_leaves_no_tag() -> None:
    """Nothing is to be resumed."""
    peer = second()
    assert disposed(peer.send(b"a", settled=True)) == []
    assert (depth(peer), tags(peer)) == (1, [])


def test_a_sender_that_settles_at_once_leaves_no_tag() -> None:
    """Even before its message is stored."""
    peer = second()
    connection = peer.wire.peer.connection
    transfer = Transfer(handle=0, delivery_id=FIRST_ID, delivery_tag=b"a", message_format=0)
    settled = Disposition(role=False, first=FIRST_ID, settled=True)
    connection.receive(Wire.frame(transfer, MESSAGE + b"1") + Wire.frame(settled), 0)
    peer.wire.peer.handle_events()
    peer.wire.settle()
    assert (depth(peer), tags(peer)) == (1, [])


def test_a_rejected_message_leaves_no_tag() -> None:
    """It is not stored, so a second attempt is decided anew."""
    peer = second()
    assert disposed(peer.send(b"a", b"no message")) == [(FIRST_ID, False, Rejected)]
    assert tags(peer) == []
    peer.dispose(FIRST_ID, role=False, settled=True)
    assert disposed(peer.send(b"b")) == [(FIRST_ID + 1, False, Accepted)]


def test_a_resumed_delivery_is_answered_and_not_stored_again() -> None:
    """By the kept outcome, which is in our unsettled map."""
    peer = second()
    peer.send(b"a")
    peer.detach()
    answer = peer.attach(sends=True, rcv_settle_mode=1, unsettled={b"a": None})
    assert {tag: state.descriptor for tag, state in (answer.unsettled or {}).items()} == {b"a": Accepted.CODE}
    assert disposed(peer.send(b"a", b"", resume=True)) == [(FIRST_ID + 1, False, Accepted)]
    assert (depth(peer), tags(peer)) == (1, [b"a"])
    peer.dispose(FIRST_ID + 1, role=False, settled=True)
    assert tags(peer) == []


def test_a_resumed_delivery_that_is_settled_is_forgotten() -> None:
    """The sender has adopted the outcome."""
    peer = second()
    peer.send(b"a")
    peer.detach()
    peer.attach(sends=True, rcv_settle_mode=1, unsettled={b"a": None})
    assert disposed(peer.send(b"a", b"", resume=True, settled=True, state=Accepted())) == []
    assert (depth(peer), tags(peer)) == (1, [])


def test_a_tag_that_the_sender_does_not_name_is_settled() -> None:
    """Unless its map is incomplete."""
    for is_incomplete in (False, True):
        peer = second()
        peer.send(b"a")
        peer.send(b"b")
        peer.detach()
        peer.attach(sends=True, rcv_settle_mode=1, unsettled={b"a": None}, incomplete_unsettled=is_incomplete)
        assert tags(peer) == ([b"a", b"b"] if is_incomplete else [b"a"])


def test_what_the_broker_does_not_know_is_sent_as_new() -> None:
    """The sender's tag is not in our map; a resumed delivery of it is ignored."""
    peer = second()
    peer.send(b"a")
    peer.detach()
    answer = peer.attach(sends=True, rcv_settle_mode=1, unsettled={b"a": None, b"b": None})
    assert set(answer.unsettled or {}) == {b"a"}
    assert disposed(peer.send(b"b", resume=True)) == []
    assert depth(peer) == 1
    assert disposed(peer.send(b"b")) == [(FIRST_ID + 2, False, Accepted)]
    assert depth(peer) == 2


def test_the_same_tag_sent_as_new_is_stored_once() -> None:
    """A sender that resends without the flag gets the kept outcome, too."""
    peer = second()
    peer.send(b"a")
    peer.detach()
    peer.attach(sends=True, rcv_settle_mode=1, unsettled={b"a": None})
    assert disposed(peer.send(b"a")) == [(FIRST_ID + 1, False, Accepted)]
    assert depth(peer) == 1


def test_without_a_map_the_tags_are_forgotten() -> None:
    """The attach resumes nothing."""
    peer = second()
    peer.send(b"a")
    peer.detach()
    assert peer.attach(sends=True, rcv_settle_mode=1).unsettled is None
    assert tags(peer) == []


@pytest.mark.parametrize("end", ["session", "connection", "close"])
def test_the_end_of_what_the_policy_names_forgets_the_tags(end: str) -> None:
    """The default policy is session-end, without a timeout."""
    peer = second()
    peer.send(b"a")
    if end == "close":
        peer.detach(closed=True)
    elif end == "session":
        peer.wire.say(End())
    else:
        peer.lose()
    peer.wire.settle()
    assert tags(peer) == []


def test_an_incomplete_map_allows_no_new_delivery() -> None:
    """A transfer that resumes nothing ends the link with illegal-state (2.7.3)."""
    peer = Resuming(max_frame_size=512)
    second(peer)
    for number in range(100):
        peer.send(b"%d" % number)
    peer.detach()
    answer = peer.attach(sends=True, rcv_settle_mode=1, unsettled={b"0": None}, incomplete_unsettled=True)
    assert answer.incomplete_unsettled
    assert answer.unsettled
    assert disposed(peer.send(b"0", b"", resume=True)) == [((FIRST_ID + 100) & MASK, False, Accepted)]
    assert error_of(peer.send(b"new")) == "amqp:illegal-state"


def test_a_partial_delivery_is_resumed_from_its_beginning() -> None:
    """In mode first, too. Its tag is in our map, without a state; it may have its old delivery-id."""
    peer = Resuming()
    peer.attach(sends=True)
    peer.send(b"a", MESSAGE, more=True)
    peer.detach()
    answer = peer.attach(sends=True, handle=1, unsettled={b"a": None})
    assert answer.unsettled == {b"a": None}
    peer.send(b"a", MESSAGE, handle=1, resume=True, more=True, delivery_id=FIRST_ID)
    assert disposed(peer.send(b"a", b"1", handle=1, resume=True, delivery_id=FIRST_ID)) == [(FIRST_ID, True, Accepted)]
    assert depth(peer) == 1


def test_kept_tags_are_limited() -> None:
    """A message beyond the limit is rejected."""
    peer = second(Resuming(config=EngineConfig(unsettled_tags_max=1)))
    peer.send(b"a")
    assert disposed(peer.send(b"b")) == [(FIRST_ID + 1, False, Rejected)]


def test_over_a_kill_of_the_broker() -> None:
    """The tags are kept by unsettled-state; the message is there once."""
    peer = second(terminus=FOREVER)
    peer.send(b"a")
    other = Resuming(peer.rig.next_life())
    answer = other.attach(sends=True, rcv_settle_mode=1, terminus=FOREVER, unsettled={b"a": None, b"b": None})
    assert set(answer.unsettled or {}) == {b"a"}
    other.send(b"a", b"", resume=True)
    other.send(b"b")
    assert depth(other) == 2
    answer = other.attach(sends=True, handle=1, rcv_settle_mode=1, terminus=FOREVER, unsettled={})
    assert answer.unsettled == {}
    assert tags(other) == []


@pytest.mark.parametrize(
    ("properties", "mode"),
    [
        ({Symbol("user-agent"): "azsdk-python-servicebus/7.12.0"}, 0),
        ({Symbol("product"): "Azure-Client"}, 0),
        ({Symbol("product"): "rhea"}, 1),
        (None, 1),
    ],
)
def test_the_sdks_of_azure_get_mode_first(properties: dict[Symbol, str] | None, mode: int) -> None:
    """They ask for mode second and never settle."""
    attach = Attach(name="l", handle=0, role=False, rcv_settle_mode=1)
    assert receiver_settle_mode(attach, Open(container_id="c", properties=properties)) == mode
    attach.properties = {Symbol("com.microsoft:timeout"): 1}
    assert receiver_settle_mode(attach, None) == 0


@pytest.mark.parametrize("is_known", [True, False])
def test_a_large_message_that_comes_again_leaves_nothing_to_the_next_one(is_known: bool) -> None:
    """It is answered by the kept outcome, or ignored if neither end knows its tag. Its pieces are dropped."""
    peer = second(Resuming(config=EngineConfig(chunk_bytes=1000)))
    message = Message(body=(Data(b"1" * 2500),)).encode()
    peer.send(b"a", message)
    peer.detach()
    peer.attach(sends=True, rcv_settle_mode=1, unsettled={b"a": None})
    answers = disposed(send_in_frames(peer, b"a" if is_known else b"unknown", message, resume=True))
    assert answers == ([(FIRST_ID + 1, False, Accepted)] if is_known else [])
    assert disposed(send_in_frames(peer, b"b", message)) == [(FIRST_ID + 2, False, Accepted)]
    assert (depth(peer), tags(peer), len(peer.rig.loop.state.uploads)) == (2, [b"a", b"b"], 0)


def send_in_frames(peer: Resuming, tag: bytes, message: bytes, **fields: bool) -> list[Composite | None]:
    """Send a message in frames of 800 bytes; return what comes back."""
    delivery_id, peer.next_id = peer.next_id, (peer.next_id + 1) & MASK
    pieces = [message[start : start + 800] for start in range(0, len(message), 800)]
    said: list[Composite | None] = []
    for index, piece in enumerate(pieces):
        first = {} if index else {"delivery_id": delivery_id, "delivery_tag": tag, "message_format": 0, **fields}
        transfer = Transfer(handle=0, more=index + 1 < len(pieces), **first)  # type: ignore[arg-type]
        said += [one for one, _ in peer.wire.give(Wire.frame(transfer, piece))]
    return said
