"""Receivers resume deliveries of large messages: the rest of a message comes, or the whole, under the same tag."""

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ambermq.engine.config import EngineConfig
from ambermq.protocol.amqp10.message.message import Data, Message, decode_message
from ambermq.protocol.amqp10.performatives.classes import Accepted, Header, Properties, Received, Transfer
from tests.engine.rig import Rig
from tests.protocol.gateway.large.test_large_messages import Peer
from tests.protocol.gateway.recovery.resuming import FOREVER, MESSAGE, Resuming, transfers

PIECE = 1000
CONFIG = EngineConfig(chunk_bytes=PIECE)


def large(size: int, number: int = 0, parts: int = 1) -> bytes:
    """A message in sections: header, properties, data."""
    body = tuple(Data(random.Random(number + part).randbytes(size // parts)) for part in range(parts))
    return Message(header=Header(durable=True), properties=Properties(message_id=number), body=body).encode()


def stored(*messages: bytes) -> Rig:
    """A broker whose queue has these messages, in pieces if they are large."""
    peer = Peer(Rig(config=CONFIG))
    peer.sender()
    for one in messages:
        for frame in peer.frames(one):
            peer.give(frame)
    return peer.rig


def held(*messages: bytes, window: int | None = None) -> tuple[Resuming, list[bytes], list[tuple[Transfer, bytes]]]:
    """A suspended link that was sent these messages, as far as the window of its session allowed; their tags."""
    peer = Resuming(stored(*messages))
    peer.attach(terminus=FOREVER)
    options: dict[str, Any] = {} if window is None else {"incoming_window": window}
    got = transfers(peer.wire.flow(100, **options))
    peer.detach()
    return peer, [bytes(one.delivery_tag) for one, _ in got if one.delivery_tag], got


def deliveries(said: list[tuple[Transfer, bytes]]) -> list[tuple[Transfer, bytes]]:
    """Whole deliveries: the first transfer of each, and its payload."""
    whole: list[tuple[Transfer, bytes]] = []
    is_open = False
    for one, payload in said:
        if is_open:
            whole[-1] = whole[-1][0], whole[-1][1] + payload
        else:
            whole.append((one, payload))
        is_open = bool(one.more)
    assert not is_open
    return whole


def test_it_goes_on_where_it_was_cut_off() -> None:
    """The frame of the resumption says where; the delivery has not failed."""
    message = large(5000)
    peer, (tag,), got = held(message, window=3)
    received = b"".join(payload for _, payload in got)
    assert 0 < len(received) < len(message)
    assert peer.counts() == []
    head = len(message) - 5000 - 8
    position = Received(section_number=2, section_offset=len(received) - head)
    answer = peer.attach(terminus=FOREVER, unsettled={tag: position})
    assert set(answer.unsettled or {}) == {tag}
    ((first, rest),) = deliveries(peer.receive())
    assert (bytes(first.delivery_tag or b""), first.resume, first.state) == (tag, True, position)
    assert received + rest == message
    peer.dispose(first.delivery_id or 0, settled=True, state=Accepted())
    assert peer.rig.queue().depth == 0


@given(st.integers(0, 4200), st.integers(1, 2))
@settings(max_examples=40, deadline=None)
def test_any_position_in_a_section_that_begins_in_the_first_piece(offset: int, parts: int) -> None:
    """What the receiver has, and what comes, is the message. An impossible position means the beginning."""
    message = large(4000, parts=parts)
    peer, (tag,), _ = held(message)
    start = message.index(b"\x00\x53\x75")
    section = len(message) - start if parts == 1 else (len(message) - start) // 2
    peer.attach(terminus=FOREVER, unsettled={tag: Received(section_number=2, section_offset=offset)})
    ((first, rest),) = deliveries(peer.receive())
    assert first.resume
    if offset < section:
        assert first.state == Received(section_number=2, section_offset=offset)
        assert rest == message[start + offset :]
    else:
        assert (first.state, rest) == (None, message)


@pytest.mark.parametrize(
    "state", [None, Received(section_number=3, section_offset=1), Received(section_number=9, section_offset=9)]
)
def test_without_a_position_that_the_broker_finds_it_begins_anew(state: Received | None) -> None:
    """The second data section begins behind the first piece. The tag is the same, and no delivery has failed."""
    message = large(4000, parts=2)
    peer, (tag,), _ = held(message)
    peer.attach(terminus=FOREVER, unsettled={tag: state})
    ((first, whole),) = deliveries(peer.receive())
    assert (bytes(first.delivery_tag or b""), first.resume, first.state, whole) == (tag, True, None, message)
    assert decode_message(whole).header.delivery_count in (None, 0)  # type: ignore[union-attr]


def test_one_that_the_receiver_does_not_know_is_new() -> None:
    """With the same tag, and without the flag."""
    message = large(3000)
    peer, (tag,), _ = held(message)
    peer.attach(terminus=FOREVER, unsettled={})
    ((first, whole),) = deliveries(peer.receive())
    assert (bytes(first.delivery_tag or b""), first.resume, whole) == (tag, False, message)


def test_large_and_small_ones_come_in_order() -> None:
    """Nothing is sent in the middle of a large message, and all are sent."""
    messages = [large(3000), MESSAGE + b"a", MESSAGE + b"b", large(2500, 1), large(2600, 2), MESSAGE + b"c"]
    peer, tags, _ = held(*messages)
    peer.attach(terminus=FOREVER, unsettled=dict.fromkeys(tags))
    got = deliveries(peer.receive() + peer.receive())
    assert [bytes(one.delivery_tag or b"") for one, _ in got] == tags
    assert [whole for _, whole in got] == messages
    assert all(one.resume for one, _ in got)


def test_detached_in_the_middle_again_nothing_is_lost() -> None:
    """It is still held, and has not failed."""
    message = large(5000)
    peer, tags, _ = held(message, large(3000, 1))
    for _ in range(3):
        peer.attach(terminus=FOREVER, unsettled=dict.fromkeys(tags))
        peer.wire.flow(10, incoming_window=2)
        peer.detach()
    assert peer.counts() == []
    peer.attach(terminus=FOREVER, unsettled=dict.fromkeys(tags))
    assert [len(whole) for _, whole in deliveries(peer.receive())] == [len(message), len(large(3000, 1))]


def test_new_messages_come_after_it() -> None:
    """Not while it is being sent."""
    peer, tags, _ = held(large(3000))
    peer.attach(terminus=FOREVER, unsettled=dict.fromkeys(tags))
    peer.publish(2)
    got = deliveries(peer.receive())
    assert [one.resume for one, _ in got] == [True, False, False]


def test_over_a_kill_of_the_broker() -> None:
    """Its pieces are in the log."""
    message = large(5000)
    peer, (tag,), _ = held(message)
    # Its sync makes the detach durable.
    peer.rig.do(peer.rig.publish(peer.rig.producer("other"), MESSAGE))
    other = Resuming(peer.rig.next_life())
    other.attach(terminus=FOREVER, unsettled={tag: Received(section_number=2, section_offset=2000)})
    ((first, rest),) = deliveries(other.receive())
    assert (first.resume, rest) == (True, message[message.index(b"\x00\x53\x75") + 2000 :])
