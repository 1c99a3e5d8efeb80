"""The incoming window: what the peer was promised stays promised."""

from collections import deque

from hypothesis import given
from hypothesis import strategies as st

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
    """Neither by a pause nor by a session that is full."""
    windows = opened()
    windows.is_paused = True
    assert windows.incoming(10) == 0
    assert windows.left == 10
    windows.is_paused = False
    assert windows.incoming(-1) == 0
    assert windows.left == 10


@given(st.lists(st.sampled_from(["send", "receive", "read", "flow", "pause", "resume", "settle", "fill"]), max_size=60))
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
        elif step in ("pause", "resume", "flow"):
            windows.is_paused = windows.is_paused if step == "flow" else step == "pause"
            flows.append((windows.next_incoming_id or 0, windows.incoming(room)))
        elif step == "receive" and frames:
            windows.received(1)
            frames -= 1
        assert windows.left >= frames
