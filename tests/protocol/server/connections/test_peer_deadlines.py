"""The deadlines of a peer: none is missed by one that goes on, each by one that does not."""

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ambermq.protocol.server.connections.peer_deadlines import PeerDeadlines
from ambermq.protocol.server_limits import ServerLimits

LIMITS = ServerLimits(write_timeout_ms=3000, handshake_bytes_min=100)
CLOSE_MS = 5000
STALLS = st.lists(st.integers(0, 100_000), max_size=5)


def missed(
    deadlines: PeerDeadlines,
    now_ms: int,
    *,
    limits: ServerLimits = LIMITS,
    read_bytes: int = 0,
    unsent_bytes: int = 0,
    frame_bytes: int = 0,
    bytes_in: int = 0,
    is_read: bool = True,
) -> str:
    """Check a peer that has read some of its output, while some waits, and has begun a frame of some bytes."""
    output = SimpleNamespace(taken_bytes=read_bytes + unsent_bytes)
    connection: Any = SimpleNamespace(output=output, incomplete_bytes=frame_bytes)
    return deadlines.missed(now_ms, connection, limits, unsent_bytes=unsent_bytes, bytes_in=bytes_in, is_read=is_read)


@given(STALLS)
def test_each_deadline_moves_by_the_standstills_and_by_no_more(stalls: list[int]) -> None:
    """The four of them miss no time that was theirs, and get none besides."""
    deadlines, end_ms = PeerDeadlines(1000), sum(stalls)
    assert missed(deadlines, 1, unsent_bytes=9) == ""
    assert not deadlines.misses_close(1, unsent_bytes=9, close_ms=CLOSE_MS)
    for stall_ms in stalls:
        deadlines.extend(stall_ms)
    assert [deadlines.misses_open(end_ms + ms) for ms in (1000, 1001)] == [False, True]
    assert [bool(missed(deadlines, end_ms + ms, unsent_bytes=9)) for ms in (3001, 3002)] == [False, True]
    late = [deadlines.misses_close(end_ms + ms, unsent_bytes=9, close_ms=CLOSE_MS) for ms in (5001, 5002)]
    assert late == [False, True]


def test_the_open_has_one_deadline_and_none_afterwards() -> None:
    """An open that came is not missed any more, whatever stands still later."""
    deadlines = PeerDeadlines(1000)
    deadlines.opened()
    deadlines.extend(500)
    assert not deadlines.misses_open(10_000)


def test_a_byte_that_is_read_gives_the_whole_timeout_again() -> None:
    """The peer is dropped when it has read nothing for the timeout, though more output came meanwhile."""
    deadlines = PeerDeadlines(0)
    for second in range(10):
        assert missed(deadlines, second * 2000, read_bytes=second, unsent_bytes=9) == ""
    assert missed(deadlines, 21_000, read_bytes=9, unsent_bytes=500) == ""
    assert "write_timeout_ms" in missed(deadlines, 21_001, read_bytes=9, unsent_bytes=900)


def test_a_write_timeout_that_is_set_later_begins_then() -> None:
    """Without a timeout no time counts, so that the first one drops no peer at once."""
    deadlines, endless = PeerDeadlines(0), ServerLimits(write_timeout_ms=0)
    assert missed(deadlines, 1000, unsent_bytes=9) == ""
    assert missed(deadlines, 900_000, limits=endless, unsent_bytes=9) == ""
    assert missed(deadlines, 900_001, unsent_bytes=9) == ""
    assert missed(deadlines, 903_001, unsent_bytes=9) == ""
    assert missed(deadlines, 903_002, unsent_bytes=9)


@pytest.mark.parametrize(("bytes_in", "is_dropped"), [(100, False), (99, True)])
def test_a_frame_has_a_rate_after_its_first_seconds(bytes_in: int, *, is_dropped: bool) -> None:
    """100 bytes are due in the second after the first five."""
    deadlines = PeerDeadlines(0)
    assert missed(deadlines, 1000, frame_bytes=1) == ""
    assert missed(deadlines, 6000, frame_bytes=1) == ""
    assert bool(missed(deadlines, 7000, frame_bytes=1, bytes_in=bytes_in)) is is_dropped


def test_a_frame_of_a_peer_that_is_not_read_has_no_rate() -> None:
    """Its time begins when it is read again; a frame that has ended has none."""
    deadlines = PeerDeadlines(0)
    assert missed(deadlines, 1000, frame_bytes=1) == ""
    assert missed(deadlines, 90_000, frame_bytes=1, is_read=False) == ""
    assert missed(deadlines, 91_000, frame_bytes=1) == ""
    assert missed(deadlines, 96_000, frame_bytes=0) == ""
    assert missed(deadlines, 200_000, frame_bytes=1) == ""


def test_the_rest_of_a_closed_connection_has_close_ms_for_each_part() -> None:
    """A peer that reads some of it has close_ms again."""
    deadlines = PeerDeadlines(0)
    for second in range(1, 10):
        assert not deadlines.misses_close(second * CLOSE_MS, unsent_bytes=100 - second, close_ms=CLOSE_MS)
    assert not deadlines.misses_close(10 * CLOSE_MS, unsent_bytes=91, close_ms=CLOSE_MS)
    assert deadlines.misses_close(10 * CLOSE_MS + 1, unsent_bytes=91, close_ms=CLOSE_MS)
