"""Whatever comes, `receive` does not raise, the right scope ends with the right condition, and memory stays flat."""

import gc
import random
import struct
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ambermq.protocol.amqp10.connection.connection import Connection
from ambermq.protocol.amqp10.connection.connection_role import ConnectionRole
from ambermq.protocol.amqp10.connection.sasl import SaslServer
from ambermq.protocol.amqp10.events import ConnectionClosed
from ambermq.protocol.amqp10.framing.frames import AMQP_HEADER, SASL_HEADER
from ambermq.protocol.amqp10.limits import ConnectionLimits
from ambermq.protocol.amqp10.performatives.classes import Accepted, Close, Detach, Disposition, End, Open, Transfer
from tests.protocol.amqp10.session.test_session import RECEIVER, SENDER, flow
from tests.protocol.peers import FIRST_ID, Wire

SPOKEN = [
    Open(container_id="wire", hostname="localhost", properties={"product": "wire"}),
    Wire.begin(),
    Wire.attach(role=SENDER, name="up", initial_delivery_count=0),
    Wire.attach(role=RECEIVER, name="down", handle=1),
    flow(handle=1, delivery_count=0, link_credit=10, next_incoming_id=FIRST_ID),
    *(Transfer(handle=0, delivery_id=(FIRST_ID + i) & 0xFFFFFFFF, delivery_tag=b"tag%d" % i) for i in range(5)),
    Transfer(handle=0, delivery_id=2, delivery_tag=b"m", more=True),
    Transfer(handle=0),
    Disposition(role=SENDER, first=FIRST_ID, last=2, settled=True, state=Accepted()),
    Detach(handle=0, closed=True),
    End(),
    Close(),
]
GOODBYES = {
    "amqp:decode-error",
    "amqp:connection:framing-error",
    "amqp:invalid-field",
    "amqp:resource-limit-exceeded",
    "amqp:not-allowed",
    "amqp:not-implemented",
}


def conversation() -> bytearray:
    """A whole legal conversation, from the header to the close."""
    return bytearray(
        AMQP_HEADER
        + b"".join(
            Wire.frame(performative, b"payload") if isinstance(performative, Transfer) else Wire.frame(performative)
            for performative in SPOKEN
        )
    )


def feed(wire: Wire, data: bytes, sizes: tuple[int, ...]) -> None:
    """Feed bytes in pieces; the last event alone reports the end."""
    position = 0
    index = 0
    while position < len(data):
        size = sizes[index % len(sizes)]
        wire.give(data[position : position + size])
        position += size
        index += 1
    ends = [event for event in wire.events if isinstance(event, ConnectionClosed)]
    assert ends == wire.events[len(wire.events) - len(ends) :]
    assert len(ends) == wire.server.is_ended
    for end in ends:
        assert end.error is None or end.error.condition in GOODBYES
    wire.read()
    wire.server.poll(10**6)
    wire.server.lost()


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=400), st.booleans(), st.integers(1, 50))
def test_random_bytes(data: bytes, opened: bool, piece: int) -> None:
    """Random bytes, before or behind a handshake."""
    feed(Wire(opened=opened), data, (piece,))


@settings(max_examples=150, deadline=None)
@given(
    st.binary(min_size=1, max_size=200), st.sampled_from((0x10, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18, 0x28))
)
def test_random_bodies(data: bytes, code: int) -> None:
    """Well-formed frames whose performatives are random."""
    body = b"\0\x53" + bytes((code,)) + data
    feed(Wire(), (8 + len(body)).to_bytes(4, "big") + b"\2\0\0\0" + body, (1000,))


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 2**32))
def test_mutations(seed: int) -> None:
    """A conversation with bytes changed, cut out or doubled, cut anywhere."""
    draw = random.Random(seed)
    data = conversation()
    for _ in range(draw.choice((1, 1, 2, 10))):
        at = draw.randrange(8, len(data))
        kind = draw.randrange(4)
        if kind == 0:
            data[at] = draw.randrange(256)
        elif kind == 1:
            data[at] ^= 1 << draw.randrange(8)
        elif kind == 2:
            del data[at : at + draw.randrange(1, 20)]
        else:
            data[at:at] = data[at : at + draw.randrange(1, 60)]
    feed(Wire(opened=False), bytes(data), tuple(draw.choice(((1,), (1000,), (3, 50), (100_000,)))))


def test_truncated() -> None:
    """A conversation cut short anywhere is waited for, and a lost transport ends it."""
    data = bytes(conversation())
    for end in range(0, len(data), 7):
        wire = Wire(opened=False)
        wire.give(data[:end])
        assert not wire.server.is_ended
        wire.server.lost()
        assert isinstance(wire.server.take_events()[-1], ConnectionClosed)


def body(data: bytes) -> bytes:
    return (8 + len(data)).to_bytes(4, "big") + b"\2\0\0\0" + data


BOMBS = {
    "array of 4 GiB": b"\0\x53\x10\xf0" + struct.pack(">IIB", 0xFFFFFFFF, 0xFFFFFFFF, 0x40),
    "array of 4 billion nothings": b"\0\x53\x10\xc0\x14\x0a\xa1\1x"
    + b"\x40" * 6
    + b"\xf0"
    + struct.pack(">IIB", 5, 0xFFFFFFFF, 0x40),
    "list of 4 billion": b"\0\x53\x10\xd0" + struct.pack(">II", 0xFFFFFFFF, 0xFFFFFFFF),
    "nesting": b"\0\x53\x10\xd0" + struct.pack(">II", 500_004, 1) + b"\xc0\xff\1" * 100_000 + bytes(200_000),
    "descriptors": b"\0" * 100_000,
}


@pytest.mark.parametrize("name", BOMBS)
def test_bombs(name: str) -> None:
    """Claims of sizes and depths cost nothing, and end the connection with decode-error."""
    wire = Wire()
    frame = body(BOMBS[name])
    tracemalloc.start()
    try:
        wire.give(frame)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert wire.error() == ("close", "amqp:decode-error")
    assert peak < 3 * len(frame) + 100_000


def test_claimed_size_is_not_allocated() -> None:
    """A frame of a claimed mebibyte costs what came of it."""
    wire = Wire()
    tracemalloc.start()
    try:
        for _ in range(100):
            wire.server.receive((1024 * 1024).to_bytes(4, "big") + b"\2\0\0\0", 0)
            wire = Wire()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 512 * 1024


def test_memory_is_flat() -> None:
    """Thousands of sessions, links, deliveries and mistakes leave nothing behind in their connection."""
    wire = Wire(ConnectionLimits(window_frames=100))

    def round_trip(index: int) -> None:
        wire.give(
            b"".join(map(wire.frame, (wire.begin(), wire.attach(role=SENDER, name=f"n{index}"), Detach(handle=5)))),
        )
        wire.give(wire.frame(End()))
        wire.read()
        wire.events.clear()

    wire.say(End())
    for index in range(50):
        round_trip(index)
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for index in range(500):
            round_trip(index)
        gc.collect()
        after = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert not wire.server.is_ended
    assert after - before < 20_000


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=200), st.integers(1, 30))
def test_random_sasl(data: bytes, piece: int) -> None:
    """Random bytes behind the SASL header; AMQP frames among them never reach a session."""
    server = Connection(ConnectionRole.SERVER, ConnectionLimits(), now_ms=0, sasl=SaslServer(), allow_bare=False)
    data = SASL_HEADER + data
    for start in range(0, len(data), piece):
        server.receive(data[start : start + piece], 0)
    assert server.sessions() == []


def test_amqp_before_sasl_is_done() -> None:
    """AMQP frames before SASL is done close the transport, and are not looked at."""
    server = Connection(ConnectionRole.SERVER, ConnectionLimits(), now_ms=0, sasl=SaslServer(), allow_bare=False)
    server.receive(SASL_HEADER + Wire.frame(Open(container_id="x")), 0)
    (event,) = server.take_events()
    assert isinstance(event, ConnectionClosed)
    assert event.error is not None
    assert event.error.condition == "amqp:connection:framing-error"
    assert server.remote_open is None
