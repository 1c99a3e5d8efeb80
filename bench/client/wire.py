"""AMQP 1.0 encoding for the load client, independent of ambermq/protocol, so both brokers have the same peer.

Input is parsed frame by frame; only a performative of an unknown shape is decoded.
"""

import struct
from collections.abc import Iterator
from typing import NamedTuple

__all__ = [
    "ACCEPTED",
    "ATTACH",
    "BEGIN",
    "CLOSE",
    "DETACH",
    "DISPOSITION",
    "END",
    "FLOW",
    "NULL",
    "OPEN",
    "SASL_FRAME",
    "SASL_INIT",
    "SASL_MECHANISMS",
    "SASL_OUTCOME",
    "SOURCE",
    "TARGET",
    "TRANSFER",
    "ZERO",
    "Described",
    "Frame",
    "binary",
    "boolean",
    "decode_value",
    "described",
    "described32",
    "encode_frame",
    "frames",
    "message",
    "string",
    "symbol",
    "ubyte",
    "uint",
    "ushort",
]

OPEN, BEGIN, ATTACH, FLOW, TRANSFER, DISPOSITION, DETACH, END, CLOSE = range(0x10, 0x19)
ACCEPTED, SOURCE, TARGET = 0x24, 0x28, 0x29
SASL_MECHANISMS, SASL_INIT, SASL_OUTCOME = 0x40, 0x41, 0x44
SASL_FRAME = 1

NULL = b"\x40"
ZERO = b"\x43"
"""The unsigned int 0 in one byte."""
_HEADER = struct.Struct(">IBBH")


class Described(NamedTuple):
    """A described value: its numeric descriptor and its value."""

    code: object
    value: object


class Frame(NamedTuple):
    """One whole frame in a buffer: type, channel, and the positions of its body."""

    type: int
    channel: int
    start: int
    end: int


def uint(value: int) -> bytes:
    """Encode an unsigned int with full width."""
    return struct.pack(">BI", 0x70, value)


def ushort(value: int) -> bytes:
    """Encode an unsigned short."""
    return struct.pack(">BH", 0x60, value)


def ubyte(value: int) -> bytes:
    """Encode an unsigned byte."""
    return struct.pack(">BB", 0x50, value)


def boolean(value: bool) -> bytes:
    """Encode a boolean in one byte."""
    return b"\x41" if value else b"\x42"


def binary(value: bytes) -> bytes:
    """Encode a binary, short if it fits."""
    return _variable(value, short=0xA0, long=0xB0)


def string(value: str) -> bytes:
    """Encode a string as UTF-8."""
    return _variable(value.encode(), short=0xA1, long=0xB1)


def symbol(value: str) -> bytes:
    """Encode a symbol."""
    return _variable(value.encode("ascii"), short=0xA3, long=0xB3)


def described(code: int, *fields: bytes) -> bytes:
    """Encode a described list of encoded fields."""
    body = b"".join(fields)
    head = bytes((0x00, 0x53, code))
    if len(body) < 255:
        return head + bytes((0xC0, len(body) + 1, len(fields))) + body
    return described32(code, *fields)


def described32(code: int, *fields: bytes) -> bytes:
    """Encode a described list of encoded fields with wide size and count, even if they are small."""
    body = b"".join(fields)
    return struct.pack(">3BBII", 0x00, 0x53, code, 0xD0, len(body) + 4, len(fields)) + body


def encode_frame(performative: bytes, *, channel: int = 0, type_: int = 0) -> bytes:
    """Encode one frame around a performative; an empty one is a heartbeat."""
    return _HEADER.pack(8 + len(performative), 2, type_, channel) + performative


def message(body: bytes) -> bytes:
    """Encode a durable message: header(durable=true) and one data section, which ends the message."""
    return described(0x70, boolean(True)) + b"\x00\x53\x75" + binary(body)


def frames(buffer: bytearray, start: int, end: int) -> Iterator[Frame]:
    """Yield the whole frames between two positions of a buffer; the caller keeps the rest.

    Raises ValueError for an invalid size or data offset.
    """
    while end - start >= 8:
        size, doff, type_, channel = _HEADER.unpack_from(buffer, start)
        if size < 8 or doff < 2 or doff * 4 > size:
            raise ValueError(f"invalid frame at position {start}: size {size}, doff {doff}")
        if end - start < size:
            return
        yield Frame(type_, channel, start + doff * 4, start + size)
        start += size


def decode_value(buffer: bytes | bytearray, position: int) -> tuple[object, int]:
    """Decode one AMQP value; return it with the position after it.

    Lists become lists, maps dicts (of hashable keys), described values Described. Trusts the peer: for a bench only.
    """
    code = buffer[position]
    if code == 0x00:
        descriptor, position = decode_value(buffer, position + 1)
        value, position = decode_value(buffer, position)
        return Described(descriptor, value), position
    return _decode_plain(buffer, position + 1, code)


def _decode_plain(buffer: bytes | bytearray, position: int, code: int) -> tuple[object, int]:
    if code in _EMPTY:
        return _EMPTY[code], position
    if code in _FIXED:
        layout = _FIXED[code]
        return layout.unpack_from(buffer, position)[0], position + layout.size
    wide = bool(code & 0x10)
    size, begin = (
        (int.from_bytes(buffer[position : position + 4]), position + 4) if wide else (buffer[position], position + 1)
    )
    end = begin + size
    kind = code & 0xEF
    if kind in {0xA0, 0xA1, 0xA3}:
        raw = bytes(buffer[begin:end])
        return (raw if kind == 0xA0 else raw.decode()), end
    if kind not in {0xC0, 0xC1, 0xE0}:
        raise ValueError(f"invalid AMQP constructor at position {position - 1}: 0x{code:02x}")
    width = 4 if wide else 1
    count = int.from_bytes(buffer[begin : begin + width])
    if kind == 0xE0:
        return _decode_array(buffer, begin + width, count), end
    items = _decode_items(buffer, begin + width, count)
    return (items if kind == 0xC0 else dict(zip(items[::2], items[1::2], strict=True))), end


def _decode_items(buffer: bytes | bytearray, position: int, count: int) -> list[object]:
    items = []
    for _ in range(count):
        value, position = decode_value(buffer, position)
        items.append(value)
    return items


def _decode_array(buffer: bytes | bytearray, position: int, count: int) -> list[object]:
    code, position = buffer[position], position + 1
    items = []
    for _ in range(count):
        value, position = _decode_plain(buffer, position, code)
        items.append(value)
    return items


def _variable(value: bytes, *, short: int, long: int) -> bytes:
    if len(value) < 256:
        return bytes((short, len(value))) + value
    return struct.pack(">BI", long, len(value)) + value


_EMPTY: dict[int, object] = {0x40: None, 0x41: True, 0x42: False, 0x43: 0, 0x44: 0, 0x45: []}
_FIXED = {
    code: struct.Struct(">" + layout)
    for code, layout in {
        0x50: "B",
        0x51: "b",
        0x52: "B",
        0x53: "B",
        0x54: "b",
        0x55: "b",
        0x56: "?",
        0x60: "H",
        0x61: "h",
        0x70: "I",
        0x71: "i",
        0x72: "f",
        0x73: "4s",
        0x74: "4s",
        0x80: "Q",
        0x81: "q",
        0x82: "d",
        0x83: "q",
        0x84: "8s",
        0x94: "16s",
        0x98: "16s",
    }.items()
}
