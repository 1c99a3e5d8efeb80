"""A large message that outruns the disk waits by the window of its session, and stops no other session."""

from typing import Any

import pytest

from ambermq.engine.config import EngineConfig
from ambermq.log.config import LogConfig
from ambermq.protocol.amqp10.limits import ConnectionLimits
from ambermq.protocol.amqp10.message.message import Data, Message
from ambermq.protocol.amqp10.performatives.classes import (
    Accepted,
    Attach,
    Detach,
    Disposition,
    End,
    Flow,
    Header,
    Source,
    Target,
    Transfer,
)
from ambermq.protocol.gateway.large.upload_windows import UploadWindows
from ambermq.protocol.server_limits import ServerLimits
from tests.engine.rig import Rig
from tests.protocol.peers import FIRST_ID as FIRST
from tests.protocol.peers import Wire, cut
from tests.protocol.watching import Watching, bodies

KIB = 1 << 10
FRAME = 8 * KIB
READ_FRAMES = 4
"""The frames of a read of the socket: what comes before the peer sees an answer."""
SYNC_TURNS = 8
"""A sync ends every eighth turn, so the peer is faster than the disk."""
LIMITS = ServerLimits(
    upload_ahead_bytes=128 * KIB, uploads_unsynced_bytes=64 * KIB, upload_waiting_bytes=512 * KIB, upload_idle_ms=1000
)
LARGE, SMALL = 0, 1
"""The channels of the two sessions."""


class Slow(Watching):
    """A peer with two sessions before a broker whose syncs end when they are told to."""

    def __init__(self, **options: Any) -> None:
        rig = Rig(config=EngineConfig(chunk_bytes=32 * KIB), log_config=LogConfig(ballast_bytes=0))
        super().__init__(rig, limits=LIMITS, **options)
        self.give(Wire.frame(Wire.begin(incoming_window=1000), channel=SMALL))
        for channel in (LARGE, SMALL):
            outcomes = Source(outcomes=("amqp:accepted:list",))
            attach = Attach(
                name=f"up{channel}", handle=0, role=False, source=outcomes, target=Target(address="q"),
                initial_delivery_count=0,
            )  # fmt: skip
            self.give(Wire.frame(attach, channel=channel))
        (begin,) = [one for one in self.opening if type(one).__name__ == "Begin"]
        self.windows = {LARGE: getattr(begin, "incoming_window", 0)}
        self.sent = {LARGE: 0, SMALL: 0}
        self.accepted = {LARGE: 0, SMALL: 0}
        self.closed: set[int] = set()
        self.ended: list[End] = []

    def send(self, data: bytes) -> None:
        """Send bytes in one read and let the engine write; no sync ends."""
        self.peer.connection.receive(data, 0)
        self.peer.handle_events()
        self.gateway.carry_out(self.rig.step())
        self.read()

    def sync(self) -> None:
        """End the sync in flight."""
        self.gateway.carry_out(self.rig.completed())
        self.gateway.carry_out(self.rig.step())
        self.read()

    def read(self) -> None:
        """Read what the broker says, as a peer that keeps to its windows."""
        for channel, performative, _ in cut(b"".join(map(bytes, self.peer.connection.take_output()))):
            if isinstance(performative, Disposition):
                assert isinstance(performative.state, Accepted)
                last = performative.first if performative.last is None else performative.last
                self.accepted[channel] += ((last - performative.first) & 0xFFFFFFFF) + 1
            elif isinstance(performative, Flow):
                seen = (performative.next_incoming_id or 0) - FIRST & 0xFFFFFFFF
                self.windows[channel] = seen + performative.incoming_window - self.sent[channel]
                if not performative.incoming_window:
                    self.closed.add(channel)
            elif isinstance(performative, End):
                self.ended.append(performative)

    def frame(self, channel: int, part: bytes, *, number: int, is_first: bool, more: bool) -> bytes:
        """Return a frame of a message; the session counts it."""
        self.sent[channel] += 1
        transfer = Transfer(
            handle=0,
            delivery_id=(FIRST + number) & 0xFFFFFFFF if is_first else None,
            delivery_tag=b"%d" % number if is_first else None,
            more=more,
        )
        if channel in self.windows:
            self.windows[channel] -= 1
        return Wire.frame(transfer, part, channel=channel)


def message(size: int) -> bytes:
    return Message(header=Header(durable=True), body=(Data(bytes(size)),)).encode()


def test_small_messages_of_another_session_go_on_beside_an_upload_on_a_slow_disk() -> None:
    """Each is accepted by the next sync. The socket is always read: no more waits than the limit and one read."""
    peer = Slow()
    body, small = message(4096 * KIB), message(10)
    parts = [body[start : start + FRAME] for start in range(0, len(body), FRAME)]
    at = turn = most = 0
    while not peer.accepted[LARGE]:
        turn += 1
        assert turn < 2000
        for _ in range(max(min(READ_FRAMES, peer.windows[LARGE], len(parts) - at), 0)):
            frame = peer.frame(LARGE, parts[at], number=0, is_first=not at, more=at < len(parts) - 1)
            peer.send(frame)
            at += 1
        if at < len(parts):
            peer.send(peer.frame(SMALL, small, number=peer.sent[SMALL], is_first=True, more=False))
        most = max(most, peer.peer.uploads.windows.size)
        if turn % SYNC_TURNS == 0:
            peer.sync()
            peer.sync()
            assert peer.accepted[SMALL] == peer.sent[SMALL]
    assert peer.closed == {LARGE}
    assert peer.sent[SMALL] > 100
    assert most <= LIMITS.upload_ahead_bytes + READ_FRAMES * FRAME < LIMITS.upload_waiting_bytes
    assert peer.peer.uploads.windows.size == 0
    assert body in bodies(received(peer))


def received(peer: Slow) -> list[tuple[Any, bytes]]:
    peer.say(Attach(name="down", handle=5, role=True, source=Source(address="q"), target=Target()))
    return peer.flow(1000, handle=5, next_incoming_id=FIRST)


def test_a_peer_that_ignores_its_window_ends_its_session() -> None:
    """It gets what it could have sent before it saw the flow, then a window violation; the other session goes on."""
    peer = Slow(connection=ConnectionLimits(window_frames=64))
    body = message(4096 * KIB)
    frames = 0
    while not peer.ended:
        part = body[frames * FRAME : (frames + 1) * FRAME]
        peer.send(peer.frame(LARGE, part, number=0, is_first=not frames, more=True))
        frames += 1
        assert frames <= 65
    (end,) = peer.ended
    assert end.error is not None
    assert end.error.condition == "amqp:session:window-violation"
    peer.send(peer.frame(SMALL, message(10), number=0, is_first=True, more=False))
    for _ in range(20):
        peer.sync()
    assert peer.accepted[SMALL] == 1
    assert peer.peer.uploads.windows.size == 0
    assert not peer.rig.loop.state.uploads


def test_a_link_that_ends_leaves_its_session_open() -> None:
    """Its pieces become durable, and the window opens for the next message of the session."""
    peer = Slow()
    body = message(1024 * KIB)
    at = 0
    while peer.windows[LARGE] > 0:
        peer.send(peer.frame(LARGE, body[at * FRAME : (at + 1) * FRAME], number=0, is_first=not at, more=True))
        at += 1
    assert peer.closed == {LARGE}
    peer.send(Wire.frame(Detach(handle=0, closed=True), channel=LARGE))
    for _ in range(20):
        peer.sync()
    assert peer.windows[LARGE] > 0
    assert peer.peer.uploads.windows.size == 0


def test_an_upload_behind_a_closed_window_is_not_idle() -> None:
    """The disk stands still, not the peer; the time begins again with the window."""
    peer = Slow()
    body = message(1024 * KIB)
    at = 0
    while peer.windows[LARGE] > 0:
        peer.send(peer.frame(LARGE, body[at * FRAME : (at + 1) * FRAME], number=0, is_first=not at, more=True))
        at += 1
    for now_ms in (1000, 5000, 9000):
        peer.peer.end_idle_uploads(now_ms, is_read=True)
    assert peer.peer.uploads
    for _ in range(20):
        peer.sync()
    peer.peer.end_idle_uploads(9500, is_read=True)
    peer.peer.end_idle_uploads(10_400, is_read=True)
    assert peer.peer.uploads
    peer.peer.end_idle_uploads(10_600, is_read=True)
    assert not peer.peer.uploads


@pytest.mark.parametrize("stored", [50, 49])
def test_windows_open_when_half_of_the_limit_waits(stored: int) -> None:
    """All of them, and each is told once."""
    said: list[str] = []

    class Session:
        def close_window(self) -> None:
            said.append("close")

        def open_window(self) -> None:
            said.append("open")

    windows = UploadWindows(ServerLimits(upload_ahead_bytes=100))
    one, other, small = Session(), Session(), Session()
    windows.arrived(small, 10)
    windows.arrived(one, 90)
    assert not said
    windows.arrived(one, 1)
    windows.arrived(other, 9)
    assert said == ["close", "close"]
    windows.stored(10)
    windows.stored(stored)
    assert said[2:] == (["open", "open"] if stored == 50 else [])
