"""A peer that is nothing but frames, over TCP, and a deadline for tests that could hang."""

import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Self, TypeVar
from urllib.parse import urlsplit

from ambermq.protocol.amqp10.framing.frames import AMQP_HEADER, decode_frame_body
from ambermq.protocol.amqp10.performatives.base import Composite
from ambermq.protocol.amqp10.performatives.classes import Attach, Begin, Flow, Open, Source, Target, Transfer
from tests.protocol.peers import Wire

__all__ = ["DEADLINE_SECONDS", "TcpWire", "deadline"]

DEADLINE_SECONDS = 180

Kind = TypeVar("Kind", bound=Composite)


@contextmanager
def deadline(seconds: int = DEADLINE_SECONDS) -> Iterator[None]:
    """Fail what hangs: a TimeoutError in the main thread after so many seconds."""

    def ring(_number: int, _frame: FrameType | None) -> None:
        raise TimeoutError(f"the test hangs: nothing came of it within {seconds} s")

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


class TcpWire:
    """A socket to a broker, and frames written and read by hand."""

    def __init__(self, url: str) -> None:
        """Connect to `amqp://HOST:PORT`, and say nothing."""
        place = urlsplit(url)
        assert place.hostname is not None
        assert place.port is not None
        self.socket = socket.create_connection((place.hostname, place.port), timeout=60)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._input = bytearray()

    @classmethod
    def begun(cls, url: str, *, container: str = "wire", begin: dict[str, int] | None = None, **fields: Any) -> Self:
        """Connect, open and begin a session on channel 0."""
        wire = cls(url)
        wire.give(AMQP_HEADER)
        wire.say(Open(container_id=container, **fields), Wire.begin(**(begin or {})))
        wire.expect(Begin)
        return wire

    def close(self) -> None:
        """Hang up."""
        self.socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def give(self, data: bytes) -> None:
        """Send bytes."""
        self.socket.sendall(data)

    def say(self, *performatives: Composite, payload: bytes = b"", channel: int = 0) -> None:
        """Send frames in one piece, each with the payload."""
        self.give(b"".join(Wire.frame(performative, payload, channel=channel) for performative in performatives))

    def attach(
        self, address: str, *, role: bool, handle: int = 0, name: str = "link", **fields: Any
    ) -> Attach:  # fmt: skip
        """Attach a link and return the broker's attach."""
        count = {} if role else {"initial_delivery_count": 0}
        source, target = Source(address=address if role else None), Target(address=None if role else address)
        self.say(Attach(name=name, handle=handle, role=role, source=source, target=target, **count, **fields))
        return self.expect(Attach)

    def send(self, delivery_id: int, payload: bytes, *, handle: int = 0, **fields: Any) -> None:
        """Send a whole message in one frame."""
        tag = delivery_id.to_bytes(4, "big")
        self.say(Transfer(handle=handle, delivery_id=delivery_id, delivery_tag=tag, **fields), payload=payload)

    def flow(self, **fields: Any) -> None:
        """Send a flow with windows wide open."""
        windows = {"next_incoming_id": 0, "incoming_window": 1000, "next_outgoing_id": 0xFFFFFFFD}
        self.say(Flow(**{**windows, "outgoing_window": 1000, **fields}))

    def next(self) -> tuple[Composite | None, bytes] | None:
        """Read a frame: performative (None: a heartbeat) and payload; None when the broker has hung up."""
        while True:
            if self._input[:4] == b"AMQP" and len(self._input) >= 8:
                del self._input[:8]
            size = int.from_bytes(self._input[:4], "big") if len(self._input) >= 8 else 0
            if size and len(self._input) >= size and self._input[:4] != b"AMQP":
                return self._cut(size)
            try:
                data = self.socket.recv(1 << 18)
            except ConnectionResetError:
                return None
            if not data:
                return None
            self._input += data

    def expect(self, kind: type[Kind]) -> Kind:
        """Read on to the next performative of a kind."""
        return self.expect_frame(kind)[0]

    def expect_frame(self, kind: type[Kind]) -> tuple[Kind, bytes]:
        """Read on to the next performative of a kind; return it and its payload."""
        while (frame := self.next()) is not None:
            if isinstance(frame[0], kind):
                return frame[0], frame[1]
        raise AssertionError(f"the broker hung up before any {kind.__name__}")

    def rest(self) -> list[Composite]:
        """Read until the broker hangs up; return its performatives."""
        found = []
        while (frame := self.next()) is not None:
            if frame[0] is not None:
                found.append(frame[0])
        return found

    def _cut(self, size: int) -> tuple[Composite | None, bytes]:
        frame = bytes(self._input[:size])
        del self._input[:size]
        body = frame[4] * 4
        if body == size:
            return None, b""
        performative, payload_start = decode_frame_body(frame, body, size, frame[5])
        return performative, frame[payload_start:]
