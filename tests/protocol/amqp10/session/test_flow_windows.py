"""The incoming window: what the peer was promised stays promised."""

from collections import deque

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ambermq.protocol.amqp10.serial_number import MASK
from ambermq.protocol.amqp10.session.flow_windows import FlowWindows


def opened(frames_max: int = 10) -> FlowWindows:
    """Windows whose peer knows the first one."""
    windows = FlowWindows(frames_max, 0)
    windows.next_incoming_id = 0
    assert windows.incoming(frames_max) == frames_max
    return windows


def test_a_smaller_window_takes_no_frames_back() -> None:
    """The peer may have sent them before it sees the flow; the flow itself tells the smaller window."""
    windows = opened()
    windows.received(2)
    assert windows.incoming(3) == 3
    assert windows.left == 8


def test_a_closed_window_takes_no_frames_back() -> None:
    """Neither by a pause nor by its owner nor by a session that is full."""
    windows = opened()
    windows.is_held = True
    assert windows.incoming(10) == 0
    assert windows.left == 10
    windows.is_held = False
    windows.is_paused = True
    assert windows.incoming(10) == 0
    assert windows.left == 10
    windows.is_paused = False
    assert windows.incoming(-1) == 0
    assert windows.left == 10


@given(
    st.lists(
        st.sampled_from(["send", "receive", "read", "flow", "pause", "resume", "settle", "fill", "hold", "free"]),
        max_size=60,
    )
)
def test_a_peer_that_keeps_to_its_window_never_violates_ours(steps: list[str]) -> None:
    """Whatever is on the way in either direction: `left` counts every frame that the peer may have sent."""
    windows = opened(6)
    room, peer_next, peer_window = 6, 0, 6
    frames, flows = 0, deque[tuple[int, int]]()
    for step in steps:
        if step == "send" and peer_window > 0:
            peer_next, peer_window, frames = peer_next + 1, peer_window - 1, frames + 1
        elif step == "read" and flows:
            seen, window = flows.popleft()
            peer_window = max(seen + window - peer_next, 0)
        elif step in ("settle", "fill"):
            room = 6 if step == "settle" else max(room - 2, 0)
        elif step in ("pause", "resume", "flow", "hold", "free"):
            windows.is_held = step == "hold" or (windows.is_held and step != "free")
            windows.is_paused = step == "pause" or (windows.is_paused and step != "resume")
            flows.append((windows.next_incoming_id or 0, windows.incoming(room)))
        elif step == "receive" and frames:
            windows.received(1)
            frames -= 1
        assert windows.left >= frames


def test_sent_frames_use_up_the_peers_window() -> None:
    """Their ids wrap, the window does not."""
    windows = FlowWindows(10, MASK)
    windows.receive_flow(MASK, 5)
    assert (windows.remote, windows.next_outgoing_id) == (5, MASK)
    windows.sent(2)
    assert (windows.remote, windows.next_outgoing_id) == (3, 1)


@pytest.mark.parametrize(
    ("seen", "window", "expected"),
    [(None, 10, 6), (None, 4, 0), (None, 3, 0), (MASK - 1, 10, 6), (MASK, 10, 7), (0, 10, 8), (2, 10, 10), (2, 0, 0)],
)
def test_a_flow_that_has_not_seen_all_frames_leaves_room_for_the_others(
    seen: int | None, window: int, expected: int
) -> None:
    """Four frames are sent, from the id two before the wrap on; without an id the peer has seen none of them."""
    windows = FlowWindows(10, MASK - 1)
    windows.receive_flow(MASK - 1, 4)
    windows.sent(4)
    windows.receive_flow(seen, window)
    assert windows.remote == expected


@pytest.mark.parametrize(
    ("frames", "room", "is_paused", "unfinished", "expected"),
    [
        (4, 10, False, 0, False),
        (5, 10, False, 0, True),
        (5, 6, False, 0, True),
        (5, 5, False, 0, False),
        (5, -1, False, 0, False),
        (6, 10, True, 0, False),
        (6, 10, True, 1, True),
    ],
)
def test_a_window_is_due_when_half_is_used_and_there_is_room(
    frames: int, room: int, is_paused: bool, unfinished: int, expected: bool
) -> None:
    """A flow that would grant nothing more is not worth its bytes; a pause ends only what is unfinished."""
    windows = opened()
    assert windows.received(frames) is (frames >= 5)
    windows.is_paused, windows.unfinished = is_paused, unfinished
    assert windows.is_due(room) is expected


def test_a_paused_window_stays_open_for_what_is_unfinished() -> None:
    """The last frames of a delivery may still come; a window is never negative."""
    windows = opened()
    windows.is_paused, windows.unfinished = True, 1
    windows.received(7)
    assert windows.incoming(8) == 8
    assert windows.left == 8
    windows.is_held = True
    assert windows.incoming(8) == 0
    assert not windows.is_due(8)
    windows.is_held = False
    assert windows.incoming(-3) == 0
