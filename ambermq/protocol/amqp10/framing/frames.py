"""Frames: the encoding of performatives on the wire (transport, 2.3).

    0   u32  size, header included
    4   u8   data offset in words of 4 bytes, at least 2: where the body begins
    5   u8   type: 0 AMQP, 1 SASL
    6   u16  channel (AMQP); ignored (SASL)
    8   ...  extended header to the data offset, then the body: performative, payload

Rule 1. An AMQP frame without a body is a heartbeat. Any other begins with a performative of the frame's type.
Rule 2. Only a transfer has a payload.
"""

from struct import Struct
from typing import Final

from ambermq.protocol.amqp10.errors import DecodeError
from ambermq.protocol.amqp10.performatives.base import Composite
from ambermq.protocol.amqp10.performatives.classes import COMPOSITES, Transfer
from ambermq.protocol.amqp10.performatives.read import decode_composite
from ambermq.protocol.amqp10.spec import ARCHETYPES, MAJOR, MINOR, REVISION
from ambermq.protocol.amqp10.types.decode import Buffer

__all__ = [
    "AMQP_FRAME",
    "AMQP_HEADER",
    "EMPTY_FRAME",
    "FRAME_HEADER_SIZE",
    "SASL_FRAME",
    "SASL_HEADER",
    "TLS_HEADER",
    "decode_frame_body",
    "encode_frame",
]

AMQP_HEADER: Final = b"AMQP" + bytes((0, MAJOR, MINOR, REVISION))
TLS_HEADER: Final = b"AMQP" + bytes((2, MAJOR, MINOR, REVISION))
SASL_HEADER: Final = b"AMQP" + bytes((3, MAJOR, MINOR, REVISION))

AMQP_FRAME: Final = 0
SASL_FRAME: Final = 1
FRAME_HEADER_SIZE: Final = 8

_pack_header: Final = Struct(">IBBH").pack

EMPTY_FRAME: Final = _pack_header(FRAME_HEADER_SIZE, 2, AMQP_FRAME, 0)
"""The heartbeat."""


def encode_frame(
    channel: int, performative: Composite, payload: bytes | bytearray | memoryview = b"", frame_type: int = AMQP_FRAME
) -> bytes:
    """Return a whole frame, with the performative at full width. Raises LocalError if a field cannot be encoded."""
    body = performative.encode()
    size = FRAME_HEADER_SIZE + len(body) + len(payload)
    return b"".join((_pack_header(size, 2, frame_type, channel), body, payload))


def decode_frame_body(buffer: Buffer, start: int, end: int, frame_type: int = AMQP_FRAME) -> tuple[Composite, int]:
    """Return a frame's performative, and the position of its payload.

    The body is buffer[start:end], without the header and the extended header. It is not empty: the caller handles a
    heartbeat. Raises DecodeError, also for a performative of the other type of frame, and for a payload after any
    performative but a transfer.
    """
    performative, payload_start = decode_composite(buffer, start, end)
    if performative.CODE not in _PERFORMATIVES[frame_type]:
        raise DecodeError(f"{performative.NAME} in a frame of type {frame_type}")
    if payload_start != end and type(performative) is not Transfer:
        raise DecodeError(f"{end - payload_start} bytes after {performative.NAME}, which has no payload")
    return performative, payload_start


_PERFORMATIVES: Final = {
    frame_type: frozenset(one.CODE for one in COMPOSITES.values() if one.TYPE in ARCHETYPES[archetype])
    for frame_type, archetype in ((AMQP_FRAME, "frame"), (SASL_FRAME, "sasl-frame"))
}
