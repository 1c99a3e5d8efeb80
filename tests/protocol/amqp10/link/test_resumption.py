"""The table of 2.6.13: what a sender does with a delivery, by the states in both unsettled maps."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ambermq.protocol.amqp10.errors import DecodeError
from ambermq.protocol.amqp10.link.resumption import (
    ABSENT,
    Resumption,
    is_terminal,
    payload_from,
    resumption_of,
    unsettled_of,
)
from ambermq.protocol.amqp10.message.message import AmqpValue, Message, Properties
from ambermq.protocol.amqp10.performatives.classes import (
    Accepted,
    Attach,
    Flow,
    Modified,
    Received,
    Rejected,
    Released,
    Transfer,
)
from ambermq.protocol.amqp10.types.decode import decode
from ambermq.protocol.amqp10.types.encode import encode
from tests.protocol.peers import Wire

OUTCOMES = st.sampled_from([Accepted(), Rejected(), Released(), Modified(delivery_failed=True)])
POSITIONS = st.builds(Received, section_number=st.integers(0, 3), section_offset=st.integers(0, 9))
STATES = st.none() | POSITIONS | OUTCOMES


def test_the_examples_of_the_specification() -> None:
    """Its fourteen delivery-tags."""
    early, late = Received(section_number=0, section_offset=4), Received(section_number=1, section_offset=0)
    examples = [
        (None, ABSENT, Resumption.SEND),
        (None, early, Resumption.RESUME),
        (None, Accepted(), Resumption.ADOPT),
        (None, None, Resumption.RESUME),
        (early, ABSENT, Resumption.SEND),
        (early, late, Resumption.RESUME),
        (late, early, Resumption.ABORT),
        (early, Accepted(), Resumption.ADOPT),
        (early, None, Resumption.ABORT),
        (Accepted(), ABSENT, Resumption.SETTLE),
        (Accepted(), early, Resumption.ABORT),
        (Accepted(), Accepted(), Resumption.SETTLE),
        (Accepted(), Released(), Resumption.RESTATE),
        (Accepted(), None, Resumption.ABORT),
    ]
    assert [resumption_of(sender, receiver) for sender, receiver, _ in examples] == [one for *_, one in examples]


@given(STATES, STATES | st.just(ABSENT))
def test_every_pair_has_one_result(sender: object, receiver: object) -> None:
    """No delivery is lost, and none is decided twice.

    An outcome of the sender is never changed. Without one, that of the receiver is taken over. A delivery without an
    outcome at either end is sent again, whole or in part, unless the sender has not the data any more. What the
    receiver does not have is never resumed, since it would ignore it.
    """
    result = resumption_of(sender, receiver)  # type: ignore[arg-type]
    if is_terminal(sender):
        assert result in {Resumption.SETTLE, Resumption.RESTATE, Resumption.ABORT}
        assert (result is Resumption.SETTLE) == (receiver is ABSENT or receiver == sender)
        assert (result is Resumption.ABORT) == (receiver is not ABSENT and not is_terminal(receiver))
    elif is_terminal(receiver):
        assert result is Resumption.ADOPT
    elif receiver is ABSENT:
        assert result is Resumption.SEND
    else:
        assert result in {Resumption.RESUME, Resumption.ABORT}
        assert sender is not None or result is Resumption.RESUME


@given(st.text(max_size=20), st.integers(0, 3), st.integers(0, 40))
def test_a_payload_goes_on_where_it_was_cut(text: str, section: int, offset: int) -> None:
    """What a receiver has, and what it gets then, is the message."""
    whole = Message(properties=Properties(message_id=text), body=(AmqpValue(text),)).encode()
    payload, state = payload_from(whole, Received(section_number=section, section_offset=offset))
    if state is None:
        assert bytes(payload) == whole
        return
    assert whole.endswith(bytes(payload))
    first = len(whole) - 3 - len(encode(text))
    starts = [0, first, len(whole)]
    assert len(whole) - len(payload) == starts[section] + offset


def test_a_map_is_read() -> None:
    """Its states are those of the specification, as a decoder without them would return them."""
    states = {b"a": None, b"b": Accepted(), b"c": Received(section_number=1, section_offset=2)}
    decoded, _ = decode(encode(states))
    attach = Attach(name="l", handle=0, role=True, unsettled=decoded)
    assert unsettled_of(attach) == states
    assert unsettled_of(Attach(name="l", handle=0, role=True)) is None


@pytest.mark.parametrize("unsettled", [{"text": None}, {bytes(33): None}, {1: None}])
def test_keys_are_tags(unsettled: dict[object, None]) -> None:
    """Binary, of at most 32 bytes."""
    with pytest.raises(DecodeError):
        unsettled_of(Attach(name="l", handle=0, role=True, unsettled=unsettled))


def test_a_large_delivery_is_resumed_in_frames() -> None:
    """Each has the flag; the window and the credit count as for any delivery."""
    wire = Wire()
    wire.say(wire.attach(role=True))
    (link,) = wire.session().links()
    link.accept(link.remote.source, link.remote.target)
    wire.read()
    wire.say(Flow(next_incoming_id=0, incoming_window=9, next_outgoing_id=0, outgoing_window=9, handle=0,
                  delivery_count=0, link_credit=2))  # fmt: skip
    frame_bytes = wire.server.remote_frame_bytes_max = 512
    assert link.resume_delivery(7, bytes(1200))
    said = [(one, payload) for _, one, payload in wire.read() if isinstance(one, Transfer)]
    assert b"".join(bytes(payload) for _, payload in said) == bytes(1200)
    assert [one.more for one, _ in said] == [True] * (len(said) - 1) + [False]
    assert all(one.resume for one, _ in said)
    assert said[0][0].delivery_tag == link.tag_of(7)
    assert link.credit == 1
    assert frame_bytes == 512
