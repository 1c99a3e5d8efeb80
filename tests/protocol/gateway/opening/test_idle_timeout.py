"""An idle timeout that would cost the broker a frame every few milliseconds is refused, with the least value."""

import pytest

from ambermq.protocol.amqp10.performatives.classes import Close, Open
from ambermq.protocol.amqp10.types.values import Symbol
from tests.protocol.watching import Watching

FLOOR_MS = 200


def answer(idle_time_out: int | None) -> list[object]:
    """Return what the broker answers to an open with this timeout, and the frames of the five seconds after it."""
    peer = Watching(idle_time_out=idle_time_out)
    for now_ms in range(1, 5000):
        due_ms = peer.peer.connection.poll(now_ms)
        assert due_ms is None or due_ms > now_ms
    return [*peer.opening, *(performative for performative, _ in peer.settle())]


@pytest.mark.parametrize("idle_time_out", [1, 2, FLOOR_MS - 1])
def test_less_than_the_floor_is_refused(idle_time_out: int) -> None:
    """Our open announces the close; the close is the last frame (transport, 2.4.5 and 2.4.3)."""
    opening, close = answer(idle_time_out)
    assert isinstance(opening, Open)
    assert (opening.properties or {})[Symbol("amqp:connection-establishment-failed")] is True
    assert isinstance(close, Close)
    assert close.error is not None
    assert close.error.condition == "amqp:not-allowed"
    assert str(FLOOR_MS) in str(close.error.description)


@pytest.mark.parametrize(("idle_time_out", "beats"), [(None, 0), (0, 0), (FLOOR_MS, 49), (500, 19), (60_000, 0)])
def test_the_floor_and_more_is_served(idle_time_out: int | None, beats: int) -> None:
    """Two heartbeats within the timeout; Proton with a heartbeat of a second asks for 500 ms. None and 0 mean none."""
    opening, begin, *rest = answer(idle_time_out)
    assert isinstance(opening, Open)
    assert not isinstance(begin, Close)
    assert rest == [None] * beats


def test_nothing_follows_our_close() -> None:
    """A peer that does not answer the close gets no heartbeats behind it."""
    peer = Watching(idle_time_out=FLOOR_MS)
    peer.peer.connection.close()
    assert [type(performative) for performative, _ in peer.settle()] == [Close]
    for now_ms in range(1, 5000):
        peer.peer.connection.poll(now_ms)
    assert peer.settle() == []
