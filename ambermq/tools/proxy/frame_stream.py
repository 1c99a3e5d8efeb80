"""The bytes of one direction of a connection as protocol headers, frames, and what is neither.

Rule 1. A part never raises: bytes that do not parse are a part with the reason.
Rule 2. After an illegal size no frame boundary is known: all later bytes of the direction do not parse.
Rule 3. Parts have the bytes that they were read from. So the parts of a direction joined are its bytes.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from ambermq.protocol.amqp10.errors import DecodeError
from ambermq.protocol.amqp10.framing.frames import AMQP_FRAME, FRAME_HEADER_SIZE, SASL_FRAME, decode_frame_body
from ambermq.protocol.amqp10.performatives.base import Composite

__all__ = ["FRAME_BYTES_MAX", "FramePart", "FrameStream", "HeaderPart", "Part", "UnreadablePart"]

FRAME_BYTES_MAX: Final = 64 << 20
"""The largest frame that is kept until it is whole; a longer one does not parse."""

_PROTOCOL: Final = b"AMQP"


@dataclass(frozen=True, slots=True)
class HeaderPart:
    """A protocol header."""

    data: bytes


@dataclass(frozen=True, slots=True)
class FramePart:
    """A frame that was decoded."""

    data: bytes
    channel: int
    is_sasl: bool
    performative: Composite | None
    """None for a heartbeat."""
    payload: bytes
    """The payload of a transfer."""


@dataclass(frozen=True, slots=True)
class UnreadablePart:
    """Bytes that are not a header and not a frame."""

    data: bytes
    reason: str
    is_sasl: bool
    """Whether the bytes may have a secret of SASL."""


Part = HeaderPart | FramePart | UnreadablePart


class FrameStream:
    """One direction of one connection."""

    __slots__ = ("_lost", "_rest", "_sasl")

    def __init__(self) -> None:
        self._rest = bytearray()
        self._lost = ""
        self._sasl = False

    def feed(self, data: bytes) -> Iterator[Part]:
        """Yield the parts that are whole with these bytes."""
        self._rest += data
        position = 0
        while not self._lost and len(self._rest) - position >= FRAME_HEADER_SIZE:
            end = position + self._size(position)
            if self._lost or end > len(self._rest):
                break
            yield self._part(bytes(memoryview(self._rest)[position:end]))
            position = end
        del self._rest[:position]
        if self._lost and self._rest:
            yield self._unreadable(self._lost)

    def finish(self) -> Iterator[Part]:
        """Yield the incomplete rest at the end of the direction."""
        if self._rest:
            yield self._unreadable("the connection ended within a frame")

    def _size(self, position: int) -> int:
        """Return the size of the header or frame at a position; note an illegal one."""
        if self._rest.startswith(_PROTOCOL, position):
            return FRAME_HEADER_SIZE
        size = int.from_bytes(self._rest[position : position + 4])
        offset = self._rest[position + 4] * 4
        if size > FRAME_BYTES_MAX or not FRAME_HEADER_SIZE <= offset <= size:
            self._lost = f"no AMQP: a size of {size} bytes, a data offset of {offset}"
        return size

    def _part(self, data: bytes) -> Part:
        if data.startswith(_PROTOCOL):
            self._sasl = data[4] == 3
            return HeaderPart(data)
        body, kind = data[4] * 4, data[5]
        is_sasl = kind == SASL_FRAME
        channel = int.from_bytes(data[6:8])
        if kind not in (AMQP_FRAME, SASL_FRAME):
            return UnreadablePart(data, f"a frame of type {kind}", self._sasl)
        if body == len(data):
            return FramePart(data, channel, is_sasl, None, b"")
        try:
            performative, payload = decode_frame_body(data, body, len(data), kind)
        except DecodeError as error:
            return UnreadablePart(data, error.description, is_sasl or self._sasl)
        return FramePart(data, channel, is_sasl, performative, data[payload:])

    def _unreadable(self, reason: str) -> Part:
        data = bytes(self._rest)
        self._rest.clear()
        return UnreadablePart(data, reason, self._sasl)
