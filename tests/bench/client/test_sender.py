"""What a sending link makes of the bytes of a broker, over a pair of sockets."""

import socket
from collections.abc import Iterator

import pytest

from bench.client import wire
from bench.client.connection import Connection, PeerClosed
from bench.client.sender import Sender


class _Pair:
    """A sender and the broker's end of its socket; the broker has given credit."""

    def __init__(self, *, credit: int, incoming_window: int = 1000, window: int = 1000) -> None:
        self.broker, mine = socket.socketpair()
        self.broker.settimeout(0)
        connection = Connection.__new__(Connection)
        connection.socket = mine
        connection.buffer = bytearray()
        connection._start = connection._end = 0
        connection.frame_bytes_max = 512
        connection.remote_incoming_window = incoming_window
        connection.socket.settimeout(0)
        self.sender = Sender(connection, bytes(8), window=window, batch_bytes=8000)
        self.flow(next_incoming_id=0, incoming_window=incoming_window, credit=credit)

    def flow(self, *, next_incoming_id: int, incoming_window: int, credit: int) -> None:
        session = (wire.uint(next_incoming_id), wire.uint(incoming_window), wire.uint(0), wire.uint(1000))
        link = (wire.uint(0), wire.uint(next_incoming_id), wire.uint(credit))
        self.say(wire.described(wire.FLOW, *session, *link))

    def settle(self, first: bytes, last: bytes, outcome: int = wire.ACCEPTED) -> None:
        self.say(wire.described(wire.DISPOSITION, b"\x41", first, last, b"\x41", wire.described(outcome)))

    def say(self, performative: bytes) -> None:
        self.broker.sendall(wire.encode_frame(performative))
        self.sender.read()


@pytest.fixture
def pair() -> Iterator[_Pair]:
    made = _Pair(credit=100)
    yield made
    made.broker.close()
    made.sender.socket.close()


def test_nothing_is_sent_beyond_credit(pair: _Pair) -> None:
    """Link credit is the bound even when every window is open (section 2.6.7)."""
    assert pair.sender.fill(1000) == 100
    assert pair.sender.fill(1000) == 0


def test_nothing_is_sent_beyond_the_sessions_window() -> None:
    """The remote incoming window counts transfer frames (section 2.5.6)."""
    narrow = _Pair(credit=100, incoming_window=7)
    assert narrow.sender.fill(1000) == 7
    assert narrow.sender.fill(1000) == 0
    narrow.flow(next_incoming_id=7, incoming_window=5, credit=100)
    narrow.settle(wire.uint(0), wire.uint(6))
    assert narrow.sender.fill(1000) == 5
    narrow.broker.close()
    narrow.sender.socket.close()


@pytest.mark.parametrize(
    ("first", "last", "count"),
    [
        (wire.uint(0), wire.uint(9), 10),
        (b"\x43", b"\x52\x09", 10),
        (b"\x43", b"\x40", 1),
        (b"\x52\x03", b"\x52\x05", 3),
        (b"\x80" + bytes(7) + b"\x02", wire.uint(2), 1),
    ],
)
def test_a_range_settles_all_its_messages(pair: _Pair, first: bytes, last: bytes, count: int) -> None:
    """First and last count at every width they are encoded in, and a missing last is first (section 2.7.6)."""
    pair.sender.fill(10)
    pair.settle(first, last)
    assert pair.sender.settled == count


def test_a_message_settled_twice_counts_once(pair: _Pair) -> None:
    """A range may cover what was settled alone before it, out of order."""
    pair.sender.fill(10)
    for first, last in ((4, 5), (7, 7), (0, 5), (3, 4), (6, 6), (8, 9)):
        pair.settle(wire.uint(first), wire.uint(last))
    assert pair.sender.settled == 10


def test_a_disposition_may_arrive_byte_by_byte(pair: _Pair) -> None:
    """What is not whole is kept for the next read."""
    pair.sender.fill(10)
    frame = wire.encode_frame(
        wire.described(wire.DISPOSITION, b"\x41", b"\x43", b"\x52\x04", b"\x41", wire.described(0x24))
    )
    for byte in frame + frame[:7]:
        pair.broker.sendall(bytes((byte,)))
        pair.sender.read()
    assert pair.sender.settled == 5


@pytest.mark.parametrize(("last", "outcome"), [(0, 0x25), (0, 0x26), (5, wire.ACCEPTED)])
def test_any_other_outcome_ends_the_measurement(pair: _Pair, last: int, outcome: int) -> None:
    """Rejected, released, and the settlement of what was never sent, are errors of the broker."""
    pair.sender.fill(1)
    with pytest.raises(PeerClosed):
        pair.settle(wire.uint(0), wire.uint(last), outcome)
