"""AMQP 1.0 bytes for the load client, written apart from protocol/ so that both brokers meet the same peer.

Rule 1: what is sent is encoded once; a batch of transfers is one buffer whose ids are stamped by column.
Rule 2: what arrives is walked frame by frame; only a performative of an unknown shape is decoded in general.

A transfer as it leaves (section 2.7.5), S bytes a message, so that byte k of each of n messages is `buffer[k::S]`:

    0   size      u32   of this frame
    4   doff 2, type 0, channel 0
    8   00 53 14  transfer
    11  c0 LL 06  list8 of six fields
    14  43        handle 0
    15  70 u32    delivery-id
    20  a0 04 u32 delivery-tag, the same four bytes
    26  43        message-format 0
    27  42        settled false
    28  41 | 42   more
    29  payload   header(durable=true), then one data section
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
    "Described",
    "Frame",
    "TransferBatch",
    "binary",
    "boolean",
    "decode_value",
    "described",
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
_HEADER = struct.Struct(">IBBH")
_FIRST_TRANSFER_BYTES = 29
_DELIVERY_ID_POSITION = 16
_DELIVERY_TAG_POSITION = 22


class Described(NamedTuple):
    """A described value: its numeric descriptor and what it describes."""

    code: object
    value: object


class Frame(NamedTuple):
    """One whole frame in a buffer: type, channel, and where its body lies."""

    type: int
    channel: int
    start: int
    end: int


def uint(value: int) -> bytes:
    """Encode an unsigned int at full width."""
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
    """Encode a binary, short where it fits."""
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
    return head + struct.pack(">BII", 0xD0, len(body) + 4, len(fields)) + body


def encode_frame(performative: bytes, *, channel: int = 0, type_: int = 0) -> bytes:
    """Encode one frame around a performative; an empty one is a heartbeat."""
    return _HEADER.pack(8 + len(performative), 2, type_, channel) + performative


def message(body: bytes) -> bytes:
    """Encode a durable message: header(durable=true) and one data section, which ends the message."""
    return described(0x70, boolean(True)) + b"\x00\x53\x75" + binary(body)


class TransferBatch:
    """A reused buffer of equal unsettled transfers on handle 0.

    `bytes_each` is the width of a message with all its frames, `frames_each` how many transfers it takes of the
    session's window when no frame may exceed `frame_bytes_max`, `body_position` where its body begins.
    """

    __slots__ = ("_buffer", "body_position", "bytes_each", "count_max", "frames_each")

    def __init__(self, body: bytes, *, count_max: int, frame_bytes_max: int) -> None:
        parts = _transfers(message(body), frame_bytes_max)
        one = b"".join(parts)
        self.frames_each = len(parts)
        self.bytes_each = len(one)
        self.body_position = _FIRST_TRANSFER_BYTES + len(message(body)) - len(body)
        self.count_max = count_max
        self._buffer = bytearray(one * count_max)

    def stamp(self, first_id: int, count: int) -> memoryview:
        """Give the first `count` messages their ids, from `first_id`; the view is valid until the next stamp."""
        end = count * self.bytes_each
        ids = struct.pack(f">{count}I", *range(first_id, first_id + count))
        for byte in range(4):
            column = ids[byte::4]
            self._buffer[_DELIVERY_ID_POSITION + byte : end : self.bytes_each] = column
            self._buffer[_DELIVERY_TAG_POSITION + byte : end : self.bytes_each] = column
        return memoryview(self._buffer)[:end]

    def stamp_time(self, now_ns: int) -> None:
        """Write a time into the first eight bytes of the first message's body."""
        struct.pack_into(">Q", self._buffer, self.body_position, now_ns)


def frames(buffer: bytearray, start: int, end: int) -> Iterator[Frame]:
    """Yield the whole frames between two positions of a buffer; the caller keeps what is left over.

    Raises ValueError for a size or data offset that no frame has.
    """
    while end - start >= 8:
        size, doff, type_, channel = _HEADER.unpack_from(buffer, start)
        if size < 8 or doff < 2 or doff * 4 > size:
            raise ValueError(f"no frame at position {start}: size {size}, doff {doff}")
        if end - start < size:
            return
        yield Frame(type_, channel, start + doff * 4, start + size)
        start += size


def decode_value(buffer: bytes | bytearray, position: int) -> tuple[object, int]:
    """Decode one AMQP value; return it with the position behind it.

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
        raise ValueError(f"no AMQP constructor at position {position - 1}: 0x{code:02x}")
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


def _transfers(payload: bytes, frame_bytes_max: int) -> list[bytes]:
    """Cut a payload into transfer frames: the first carries the ids, later ones nulls in their place."""
    room = frame_bytes_max - _FIRST_TRANSFER_BYTES
    identity = uint(0) + binary(b"\0\0\0\0") + b"\x43"
    parts = []
    for start in range(0, len(payload), room):
        more = boolean(start + room < len(payload))
        fields = identity if start == 0 else NULL * 3
        head = b"\x43" + fields + b"\x42" + more
        transfer = bytes((0x00, 0x53, TRANSFER, 0xC0, len(head) + 1, 6)) + head
        parts.append(encode_frame(transfer + payload[start : start + room]))
    return parts


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
