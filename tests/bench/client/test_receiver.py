"""What a receiving link makes of the bytes of a broker, over a pair of sockets."""

import socket
import time
from collections.abc import Iterator

import pytest

from bench.client import wire
from bench.client.connection import Connection, PeerClosed
from bench.client.receiver import Receiver
from bench.client.transfer_batch import TransferBatch


class _Pair:
    """A receiver with credit 100 for bodies of 20 bytes, and the broker's end of its socket."""

    def __init__(self) -> None:
        self.broker, mine = socket.socketpair()
        self.broker.settimeout(0)
        connection = Connection.__new__(Connection)
        connection.socket = mine
        connection.buffer = bytearray()
        connection._start = connection._end = 0
        connection.next_incoming_id = 0
        self.receiver = Receiver(connection, credit=100, body_bytes=20, has_times=True)

    def answers(self) -> list[wire.Described]:
        stream = bytearray(self.broker.recv(1 << 16))
        values = [wire.decode_value(stream, frame.start)[0] for frame in wire.frames(stream, 0, len(stream))]
        return [value for value in values if isinstance(value, wire.Described)]


@pytest.fixture
def pair() -> Iterator[_Pair]:
    made = _Pair()
    yield made
    made.broker.close()
    made.receiver.socket.close()


def _transfers(first: int, count: int, frame_bytes_max: int = 512) -> bytes:
    return bytes(TransferBatch(bytes(20), count_max=count, frame_bytes_max=frame_bytes_max).stamp(first, count))


@pytest.mark.parametrize("frame_bytes_max", [512, 40])
@pytest.mark.parametrize("chunk", [1, 7, 60, 1000])
def test_every_message_counts_once_however_it_is_cut(pair: _Pair, frame_bytes_max: int, chunk: int) -> None:
    """Reads cut frames anywhere, and frames cut messages; neither changes what has arrived."""
    stream = _transfers(0, 9, frame_bytes_max)
    for start in range(0, len(stream), chunk):
        pair.broker.sendall(stream[start : start + chunk])
        pair.receiver.read()
    assert pair.receiver.received == 9


def test_one_disposition_settles_what_one_read_brought(pair: _Pair) -> None:
    """A range accepted and settled, from the first delivery-id to the last (section 2.7.6)."""
    pair.broker.sendall(_transfers(5, 9))
    pair.receiver.read()
    accepted = wire.Described(wire.ACCEPTED, [])
    assert pair.answers() == [wire.Described(wire.DISPOSITION, [True, 5, 13, True, accepted])]


def test_credit_is_topped_up_at_half(pair: _Pair) -> None:
    """The flow after half of the credit carries the count of deliveries and the full credit again."""
    pair.broker.sendall(_transfers(0, 49))
    pair.receiver.read()
    pair.broker.sendall(_transfers(49, 1))
    pair.receiver.read()
    flows = [answer.value for answer in pair.answers() if answer.code == wire.FLOW]
    assert flows == [[50, 1 << 20, 0, 1 << 20, 0, 50, 100]]


def test_a_gap_in_the_delivery_ids_ends_the_measurement(pair: _Pair) -> None:
    """A range must not accept what was never delivered."""
    pair.broker.sendall(_transfers(0, 3) + _transfers(4, 1))
    with pytest.raises(PeerClosed, match=r"expected delivery-id 3|delivery-ids"):
        pair.receiver.read()


def test_a_stamped_message_yields_its_latency(pair: _Pair) -> None:
    """The time of sending is read from the body; a body of zeros has none."""
    batch = TransferBatch(bytes(20), count_max=2, frame_bytes_max=512)
    batch.stamp_time(time.monotonic_ns() - 1_000_000)
    pair.broker.sendall(batch.stamp(0, 2))
    pair.receiver.read()
    assert [latency >= 1_000_000 for latency in pair.receiver.latencies_ns] == [True]
