"""The recogniser among sessions and links that come and go: what is told and said is the same with and without it."""

import random
from unittest.mock import patch

from hypothesis import given, settings
from hypothesis import strategies as st

from ambermq.protocol.amqp10.events import Event, LinkAttached, Opened
from ambermq.protocol.amqp10.framing.frames import EMPTY_FRAME
from ambermq.protocol.amqp10.limits import ConnectionLimits
from ambermq.protocol.amqp10.link.receiver import Receiver
from ambermq.protocol.amqp10.link.sender import Sender
from ambermq.protocol.amqp10.performatives.base import Composite
from ambermq.protocol.amqp10.performatives.classes import (
    Accepted,
    Begin,
    Close,
    DeliveryState,
    Detach,
    Disposition,
    End,
    Modified,
    Open,
    Rejected,
    Released,
    Transfer,
)
from ambermq.protocol.amqp10.serial_number import MASK
from tests.protocol.amqp10.framing.test_transfer_recogniser import cut_at_random, flat
from tests.protocol.amqp10.session.test_session import RECEIVER, SENDER, flow
from tests.protocol.peers import FIRST_ID, Wire

LIMITS = ConnectionLimits(
    window_frames=30, frame_bytes_max=2000, message_bytes_max=600, large_payload_bytes=400, channel_max=9
)
CHANNELS = (0, 5)
_OPEN = Open(container_id="wire")
_SENT = 12


class Script:
    """Frames of a peer that mostly keeps to the rules, on two channels; ids go on with each session."""

    def __init__(self, draw: random.Random) -> None:
        self.draw = draw
        self._next_ids = dict.fromkeys(CHANNELS, FIRST_ID)
        self._said = dict.fromkeys(CHANNELS, FIRST_ID)
        self._habits = {channel: self._habit() for channel in CHANNELS}
        self._names = 0

    def opening(self, channel: int) -> list[bytes]:
        """A session, two links up and one down."""
        self._next_ids[channel] = self._said[channel] = FIRST_ID
        frames = [Wire.frame(Wire.begin(), channel=channel)]
        return frames + [self.attach(channel, handle) for handle in (0, 1, 2)] + [self.credit(channel)]

    def attach(self, channel: int, handle: int) -> bytes:
        """A link at a handle: the last one receives. Its name may be that of another, which it steals."""
        draw = self.draw
        self._names += draw.random() < 0.9
        role = RECEIVER if handle == 2 else SENDER
        attach = Wire.attach(
            role=role, name=f"link {self._names}", handle=handle, rcv_settle_mode=int(draw.random() < 0.3)
        )
        return Wire.frame(attach, channel=channel)

    def credit(self, channel: int) -> bytes:
        """Credit for the link that receives."""
        fields = flow(handle=2, delivery_count=0, link_credit=_SENT, next_incoming_id=FIRST_ID)
        return Wire.frame(fields, channel=channel)

    def some(self) -> list[bytes]:
        """What comes next: mostly many frames alike."""
        draw, channel = self.draw, self.draw.choice(CHANNELS)
        kind = draw.random()
        if kind < 0.4:
            return self._transfers(channel)
        if kind < 0.75:
            return self._settlements(channel)
        if kind < 0.8:
            return [EMPTY_FRAME]
        if kind < 0.9:
            handle = draw.randrange(3)
            detached = Wire.frame(Detach(handle=handle, closed=draw.random() < 0.5), channel=channel)
            return [detached, self.attach(channel, handle)] if draw.random() < 0.8 else [detached]
        if kind < 0.97:
            return [Wire.frame(End(), channel=channel), *(self.opening(channel) if draw.random() < 0.7 else [])]
        return [Wire.frame(self._stray(), channel=draw.choice((*CHANNELS, 3, 12)))]

    def _habit(self) -> tuple[bool, bool, bool, DeliveryState | None]:
        """How settlements are said: role, settled, whether with their last id, state."""
        draw = self.draw
        states: tuple[DeliveryState | None, ...] = (Accepted(), Accepted(), Released(), Modified(), Rejected(), None)
        return draw.random() < 0.8, draw.random() < 0.8, draw.random() < 0.3, draw.choice(states)

    def _stray(self) -> Composite:
        return self.draw.choice((Close(), Begin(next_outgoing_id=0, incoming_window=1, outgoing_window=1), End()))

    def _transfers(self, channel: int) -> list[bytes]:
        draw = self.draw
        handle, settled, size = draw.randrange(2), draw.random() < 0.2, draw.choice((1, 10, 500))
        frames = []
        for _ in range(draw.choice((1, 3, 12))):
            delivery_id = self._next_ids[channel]
            self._next_ids[channel] = (delivery_id + (draw.random() < 0.99)) & MASK
            more = draw.random() < 0.05
            transfer = Transfer(
                handle=handle, delivery_id=delivery_id, delivery_tag=bytes(4), settled=settled or None, more=more
            )
            frames.append(Wire.frame(transfer, bytes(size), channel=channel))
            if more and draw.random() < 0.7:
                frames.append(Wire.frame(Transfer(handle=handle), bytes(size), channel=channel))
        return frames

    def _settlements(self, channel: int) -> list[bytes]:
        """One by one, of what was sent or of what was received."""
        draw = self.draw
        if draw.random() < 0.5:
            self._habits[channel] = self._habit()
        role, settled, has_last, state = self._habits[channel]
        frames = []
        for _ in range(draw.choice((1, 3, 12))):
            first = self._said[channel]
            self._said[channel] = (first + draw.choice((1,) * 8 + (0, 3, MASK - 8))) & MASK
            said = Disposition(role=role, first=first, last=first if has_last else None, settled=settled, state=state)
            frames.append(Wire.frame(said, channel=channel))
            if draw.random() < 0.3:
                frames.append(self._flow(channel))
        return frames

    def _flow(self, channel: int) -> bytes:
        """Credit between settlements, as receivers grant it that want one message at a time; some of it is faulty."""
        draw = self.draw
        handle = draw.choice((2, 2, 2, 2, 1, None, 3 if draw.random() < 0.1 else 2))
        count, credit = (None, None) if handle is None else (draw.choice((0, 1, 300)), draw.choice((1, _SENT)))
        fields = flow(handle=handle, delivery_count=count, link_credit=credit, next_incoming_id=FIRST_ID)
        fields.incoming_window = draw.choice((0, 5, 300, 70_000))
        fields.drain, fields.echo = draw.random() < 0.1, draw.random() < 0.1
        fields.properties = {"x": 1} if draw.random() < 0.05 else None
        return Wire.frame(fields, channel=channel)


class Server(Wire):
    """A server that sends as soon as it may, settles what it takes, and now and then ends something itself."""

    def __init__(self, draw: random.Random) -> None:
        super().__init__(LIMITS, credit=draw.choice((5, 40)), opened=False)
        self._draw = draw

    def take(self, data: bytes | memoryview) -> None:
        """Handle a read as an owner does."""
        self.server.receive(data, 0)
        while events := self.server.take_events():
            self.events += events
            for event in events:
                self._answer(event)
        links = [link for session in self.server.sessions() for link in session.links()]
        for link in links:
            if isinstance(link, Sender) and (count := min(link.sendable, _SENT)):
                link.send_run(range(count), [b"x"] * count)
        self._meddle()

    def _answer(self, event: Event) -> None:
        if isinstance(event, Opened):
            self.server.accept()
        elif isinstance(event, LinkAttached) and event.link.remote is not None:
            event.link.accept(event.link.remote.source, event.link.remote.target)
            if isinstance(event.link, Receiver):
                event.link.grant(self.credit)

    def _meddle(self) -> None:
        chance, at = self._draw.random(), self._draw.random()
        sessions = self.server.sessions()
        if not sessions:
            return
        session = sessions[int(at * len(sessions))]
        links = session.links()
        if chance < 0.03 and links:
            links[int(at * 7) % len(links)].detach()
        elif chance < 0.05:
            session.end()
        elif chance < 0.06:
            self.server.close()
        elif chance < 0.1:
            session.pause()
        elif chance < 0.5:
            session.settle(FIRST_ID, 20, Accepted())


def reads(draw: random.Random, frames: list[bytes]) -> list[bytes]:
    """A few frames a read, mostly whole ones: what is alike is looked for before they are cut."""
    pieces = []
    while frames:
        count = draw.choice((1, 1, 2, 6, 60))
        data, frames = b"".join(frames[:count]), frames[count:]
        pieces += [data] if draw.random() < 0.9 else cut_at_random(draw, data)
    return pieces


def outcome(seed: int) -> tuple[object, ...]:
    """What a server tells and says, and what it holds in the end; drawn alike by the seed."""
    draw = random.Random(seed)
    script, wire = Script(draw), Server(random.Random(seed))
    head = b"AMQP\0\1\0\0" + Wire.frame(_OPEN)
    frames = [head, *(frame for channel in CHANNELS for frame in script.opening(channel))]
    for _ in range(draw.choice((3, 10, 25))):
        frames += script.some()
    said = []
    for piece in reads(draw, frames):
        wire.take(memoryview(bytearray(piece)) if draw.random() < 0.5 else piece)
        said.append(wire.read())
    sessions = wire.server.sessions()
    links = [(link.name, link.credit, link.delivery_count, link.state) for each in sessions for link in each.links()]
    held = [(each.state, each.sent.count, each.received.count, each.windows.left) for each in sessions]
    return flat(wire.events), said, links, held, wire.server.state, wire.server.partial_bytes


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 2**32))
def test_on_equals_off_while_sessions_and_links_come_and_go(seed: int) -> None:
    """Handles and channels that are used again, links in mode second, ends from both sides: nothing differs."""
    recognised = outcome(seed)
    with (
        patch("ambermq.protocol.amqp10.session.incoming_transfers.learn", return_value=None),
        patch("ambermq.protocol.amqp10.session.frame_dispatch.read_flow", return_value=None),
        patch("ambermq.protocol.amqp10.session.dispositions.read_disposition", return_value=None),
    ):
        assert outcome(seed) == recognised


def test_what_is_alike_on_a_channel_without_session_is_a_fault() -> None:
    """The session that the last of its like was for has ended."""
    wire = Wire(LIMITS)
    said = [Disposition(role=RECEIVER, first=first, settled=True, state=Accepted()) for first in (300, 301, 302)]
    wire.say(said[0])
    wire.say(said[1])
    assert not wire.server.is_ended
    wire.say(End())
    wire.say(said[2])
    assert wire.server.is_ended
