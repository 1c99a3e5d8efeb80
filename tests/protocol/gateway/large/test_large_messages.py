"""Large messages through the gateway, as frames: piece by piece in, piece by piece out, beside other links."""

import random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from ambermq.engine.config import EngineConfig
from ambermq.protocol.amqp10.limits import ConnectionLimits
from ambermq.protocol.amqp10.message.message import Data, Message
from ambermq.protocol.amqp10.performatives.classes import (
    Accepted,
    Attach,
    Detach,
    Disposition,
    Flow,
    Header,
    Rejected,
    Source,
    Target,
    Transfer,
)
from ambermq.protocol.server_limits import ServerLimits
from tests.engine.rig import Rig
from tests.protocol.peers import FIRST_ID as FIRST
from tests.protocol.peers import Wire, disposed
from tests.protocol.watching import Watching, bodies

PIECE = 1000
CONFIG = EngineConfig(chunk_bytes=PIECE)
FRAME = 300


def message(number: int, size: int) -> bytes:
    """A message whose body differs by number and place."""
    return Message(header=Header(durable=True), body=(Data(random.Random(number).randbytes(size)),)).encode()


class Peer(Watching):
    """A peer that sends large messages in small frames, and receives."""

    def __init__(self, rig: Rig | None = None, **options: Any) -> None:
        super().__init__(rig or Rig(config=CONFIG), **options)
        self.next_id = 0

    def sender(self, handle: int = 0, address: str = "q", **fields: Any) -> list[Any]:
        """Attach a link on which the peer sends."""
        attach = Attach(
            name=f"up{handle}",
            handle=handle,
            role=False,
            source=Source(outcomes=("amqp:accepted:list", "amqp:rejected:list")),
            target=Target(address=address),
            initial_delivery_count=0,
            **fields,
        )
        return self.say(attach)

    def frames(self, body: bytes, *, handle: int = 0, settled: bool = False, size: int = FRAME) -> list[bytes]:
        """Return the frames of a message."""
        number, self.next_id = self.next_id, self.next_id + 1
        parts = [body[start : start + size] for start in range(0, len(body), size)]
        return [
            Wire.frame(
                Transfer(
                    handle=handle,
                    delivery_id=None if index else (number + FIRST) & 0xFFFFFFFF,
                    delivery_tag=None if index else b"%d" % number,
                    settled=settled,
                    more=index < len(parts) - 1,
                ),
                part,
            )
            for index, part in enumerate(parts)
        ]

    def receiver(self, handle: int = 5, *, credit: int = 10, window: int | None = None, **fields: Any) -> list[Any]:
        """Attach a link on which the peer receives; return what comes."""
        attach = Attach(name=f"down{handle}", handle=handle, role=True, source=Source(address="q"), target=Target())
        self.say(attach)
        return self.flow(credit, handle=handle, **({} if window is None else {"incoming_window": window}), **fields)


def outcomes(said: list[tuple[Any, bytes]]) -> list[type]:
    """The outcomes among what came."""
    return [type(one.state) for one in disposed([performative for performative, _ in said])]


def test_a_message_in_frames_is_accepted_and_delivered_byte_for_byte() -> None:
    """The memory of its frames is that of one piece."""
    peer = Peer()
    peer.sender()
    body = message(1, 12_345)
    most, said = 0, list[Any]()
    for frame in peer.frames(body):
        said += peer.give(frame)
        most = max(most, peer.peer.connection.partial_bytes)
    assert outcomes(said) == [Accepted]
    assert most <= PIECE + 2 * FRAME
    assert not peer.rig.loop.state.uploads
    assert bodies(peer.receiver()) == [body]


def test_two_uploads_and_small_messages_interleave() -> None:
    """Each link has its own; a small message does not wait for a large one of another link."""
    peer = Peer()
    for handle in range(3):
        peer.sender(handle)
    large = [message(1, 5000), message(2, 4000)]
    ways = [peer.frames(body, handle=handle) for handle, body in enumerate(large)]
    for one, other in zip(ways[0][:-1], ways[1], strict=False):
        peer.give(one)
        peer.give(other)
    small = message(3, 10)
    assert outcomes(peer.give(b"".join(peer.frames(small, handle=2)))) == [Accepted]
    for frame in [*ways[0][len(ways[1]) :], *ways[1][len(ways[0]) - 1 :]]:
        peer.give(frame)
    assert sorted(bodies(peer.receiver())) == sorted([*large, small])


def test_an_aborted_message_leaves_nothing() -> None:
    """And neither does one whose link or connection ends in the middle."""
    for end in ("abort", "detach", "lost"):
        peer = Peer()
        peer.sender()
        frames = peer.frames(message(1, 5000))
        peer.give(b"".join(frames[:-1]))
        assert peer.rig.loop.state.uploads
        if end == "abort":
            peer.give(Wire.frame(Transfer(handle=0, more=False, aborted=True)))
        elif end == "detach":
            peer.say(Detach(handle=0, closed=True))
        else:
            peer.peer.lost()
            peer.settle()
        assert not peer.rig.loop.state.uploads
        assert peer.gateway.uploads.count == peer.gateway.uploads.open_bytes == 0
        assert not peer.peer.uploads
        assert peer.rig.queue().available == 0
        if end == "abort":
            assert outcomes(peer.give(b"".join(peer.frames(message(2, 3000))))) == [Accepted]


def test_the_largest_size_is_checked_while_bytes_are_summed() -> None:
    """The link ends with the frame that goes beyond it."""
    peer = Peer(connection=ConnectionLimits(message_bytes_max=4000))
    peer.sender()
    frames = peer.frames(message(1, 8000))
    said = [performative for frame in frames[:15] for performative, _ in peer.give(frame)]
    (detach,) = [one for one in said if isinstance(one, Detach)]
    assert detach.error is not None
    assert detach.error.condition == "amqp:link:message-size-exceeded"
    assert not peer.rig.loop.state.uploads


def test_more_uploads_than_the_limit_are_rejected() -> None:
    """The refused message is read to its end, and nothing of it is stored."""
    peer = Peer(limits=ServerLimits(uploads_max=1))
    for handle in range(2):
        peer.sender(handle)
    first, second = peer.frames(message(1, 3000)), peer.frames(message(2, 3000), handle=1)
    peer.give(b"".join(first[:5]))
    said = peer.give(b"".join(second))
    assert outcomes(said) == [Rejected]
    assert len(peer.rig.loop.state.uploads) == 1
    assert outcomes(peer.give(b"".join(first[5:]))) == [Accepted]


def test_all_uploads_together_have_a_limit() -> None:
    """Of bytes that have arrived."""
    peer = Peer(limits=ServerLimits(uploads_bytes_max=2500))
    peer.sender()
    assert outcomes(peer.give(b"".join(peer.frames(message(1, 3900))))) == [Rejected]
    assert not peer.rig.loop.state.uploads
    assert outcomes(peer.give(b"".join(peer.frames(message(2, 2400))))) == [Accepted]


def test_a_malformed_body_is_rejected() -> None:
    """A section that is cut off, or that is none, is found without the whole message in memory."""
    peer = Peer()
    peer.sender()
    cut_off = message(1, 5000)[:-7]
    assert outcomes(peer.give(b"".join(peer.frames(cut_off)))) == [Rejected]
    trailing = message(1, 5000) + b"\x01\x02"
    assert outcomes(peer.give(b"".join(peer.frames(trailing)))) == [Rejected]
    assert peer.rig.queue().available == 0
    assert not peer.rig.loop.state.uploads


def test_an_upload_that_stands_still_ends_with_its_link() -> None:
    """After upload_idle_ms without a byte; one that moves goes on."""
    peer = Peer(limits=ServerLimits(upload_idle_ms=1000))
    peer.sender()
    frames = peer.frames(message(1, 5000))
    peer.give(b"".join(frames[:6]))
    peer.peer.end_idle_uploads(1000, is_read=True)
    peer.give(frames[6])
    peer.peer.end_idle_uploads(2500, is_read=True)
    assert peer.rig.loop.state.uploads
    peer.peer.end_idle_uploads(9000, is_read=False)
    peer.peer.end_idle_uploads(9100, is_read=True)
    assert peer.peer.uploads
    peer.peer.end_idle_uploads(10_200, is_read=True)
    (detach,) = [one for one, _ in peer.settle() if isinstance(one, Detach)]
    assert detach.error is not None
    assert "upload_idle_ms" in str(detach.error.description)
    assert not peer.rig.loop.state.uploads


def test_a_closed_window_holds_a_large_message_and_no_other_link() -> None:
    """It goes on with the window, and is whole."""
    peer = Peer()
    peer.sender()
    body = message(1, 9500)
    peer.give(b"".join(peer.frames(body)))
    said = peer.receiver(window=3)
    count = len([one for one, _ in said if isinstance(one, Transfer)])
    assert count == 3
    while count < 10:
        more = peer.give(
            Wire.frame(Flow(next_incoming_id=count, incoming_window=2, next_outgoing_id=FIRST, outgoing_window=100))
        )
        transfers = [one for one, _ in more if isinstance(one, Transfer)]
        assert 0 < len(transfers) <= 2
        count += len(transfers)
        said += more
    assert bodies(said) == [body]


def test_a_detach_in_the_middle_returns_the_message_as_a_failed_delivery() -> None:
    """Its stream ends, the log is released, and the next receiver gets it whole."""
    peer = Peer()
    peer.sender()
    body = message(1, 9500)
    peer.give(b"".join(peer.frames(body)))
    peer.receiver(window=3)
    peer.say(Detach(handle=5, closed=True))
    assert peer.rig.queue().available == 1
    (again,) = bodies(peer.receiver(6, next_incoming_id=3, window=1000))
    assert again.endswith(body[-9000:])


def test_a_settlement_in_the_middle_aborts_the_rest() -> None:
    """The receiver has decided: no more of the message is sent."""
    peer = Peer()
    peer.sender()
    peer.give(b"".join(peer.frames(message(1, 9500))))
    peer.give(b"".join(peer.frames(message(2, 10))))
    (first, *_) = [one for one, _ in peer.receiver(window=3) if isinstance(one, Transfer)]
    rejected = Disposition(role=True, first=first.delivery_id, settled=True, state=Rejected())
    peer.say(rejected)
    more = peer.flow(10, handle=5, count=1, next_incoming_id=3)
    aborted, *others = [one for one, _ in more if isinstance(one, Transfer)]
    assert aborted.aborted
    assert len(others) == 1
    assert peer.rig.queue().depth == 1


def test_a_damaged_piece_aborts_the_delivery_and_the_message_leaves() -> None:
    """Of a message whose first piece is damaged no frame is sent."""
    for number, start in enumerate((100, 7000)):
        peer = Peer()
        peer.sender()
        body = message(1, 9500)
        for frame in peer.frames(body):
            peer.give(frame)
        rig = peer.rig
        rig.loop.log.bodies.forget(range(1000))
        rig.damage(body[start : start + 50])
        rig.forget_pages()
        said = peer.receiver()
        transfers = [one for one, _ in said if isinstance(one, Transfer)]
        assert bool(transfers) == bool(number)
        assert not transfers or transfers[-1].aborted
        assert rig.queue().depth == 0


@settings(max_examples=40)
@given(
    st.lists(
        st.tuples(st.integers(0, 2), st.integers(1, 6000), st.sampled_from(("whole", "abort", "cut"))),
        min_size=1,
        max_size=8,
    ),
    st.integers(30, 1500),
)
def test_what_arrives_whole_is_delivered_whole(plan: list[tuple[int, int, str]], frame_bytes: int) -> None:
    """In the order of each link, whatever is aborted or cut, and however small the frames are."""
    peer = Peer()
    for handle in range(3):
        peer.sender(handle)
    expected: list[bytes] = []
    for number, (handle, size, end) in enumerate(plan):
        body = message(number, size)
        frames = peer.frames(body, handle=handle, size=frame_bytes)
        if end == "whole" or len(frames) == 1:
            peer.give(b"".join(frames))
            expected.append(body)
        elif end == "abort":
            peer.give(b"".join([*frames[:-1], Wire.frame(Transfer(handle=handle, more=False, aborted=True))]))
        else:
            peer.give(b"".join(frames[:-1]))
            peer.say(Detach(handle=handle, closed=True))
            peer.sender(handle)
    assert not peer.rig.loop.state.uploads
    assert bodies(peer.receiver(credit=100)) == expected
    live = peer.rig.loop.state
    peer.rig.do()
    peer.rig.producer()
    assert peer.rig.loop.state.queues == live.queues
    peer.rig.next_life()
