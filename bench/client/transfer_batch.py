"""A batch of equal transfers in one buffer: encoded once, the bytes that differ are stamped by column.

A transfer (section 2.7.5) has S bytes for each message, so byte k of each of n messages is `buffer[k::S]`:

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

With the shape of another client (shapes.py) the list may be wide, and the fields after the tag and the message differ.
Message-id and creation-time are stamped too.
"""

import struct
import time

from bench.client import wire
from bench.client.shapes import STAMPED_ID_BYTES, Shape

__all__ = ["TransferBatch"]

_FIRST_TRANSFER_BYTES = 29
_FROM_ID_TO_TAG = 6


class TransferBatch:
    """A reused buffer of equal unsettled transfers on handle 0.

    `bytes_each` is the length of a message with all its frames. `frames_each` is its number of transfers, with frames
    of `frame_bytes_max` at most. `body_position` is the position of its body.
    """

    __slots__ = (
        *("_buffer", "_delivery_id_position", "_message_id_position", "_time_position"),
        *("body_position", "bytes_each", "count_max", "frames_each"),
    )

    def __init__(self, body: bytes, *, count_max: int, frame_bytes_max: int, shape: Shape | None = None) -> None:
        if shape is None:
            parts, payload_start, payload = _transfers(wire.message(body), frame_bytes_max), _FIRST_TRANSFER_BYTES, b""
        else:
            head, payload = shape.transfer_head(), shape.message(body)
            parts, payload_start = [wire.encode_frame(head + payload)], 8 + len(head)
            if len(parts[0]) > frame_bytes_max:
                raise ValueError(f"a message of another client fits into one frame, {len(parts[0])} bytes do not")
        one = b"".join(parts)
        self.frames_each = len(parts)
        self.bytes_each = len(one)
        self.body_position = payload_start + len(payload or wire.message(body)) - len(body)
        self.count_max = count_max
        self._delivery_id_position = 22 if shape is not None and shape.is_list32 else 16
        self._message_id_position = self._time_position = -1
        if shape is not None and shape.id_position >= 0:
            self._message_id_position = payload_start + shape.id_position
        if shape is not None and shape.time_position >= 0:
            self._time_position = payload_start + shape.time_position
        self._buffer = bytearray(one * count_max)

    def stamp(self, first_id: int, count: int) -> memoryview:
        """Stamp the first `count` messages with ids from `first_id`; the view is valid until the next stamp."""
        end = count * self.bytes_each
        ids = struct.pack(f">{count}I", *range(first_id, first_id + count))
        self._stamp_columns(self._delivery_id_position, ids, 4, end)
        self._stamp_columns(self._delivery_id_position + _FROM_ID_TO_TAG, ids, 4, end)
        if self._message_id_position >= 0:
            self._stamp_columns(self._message_id_position, ids.hex().encode(), STAMPED_ID_BYTES, end)
        if self._time_position >= 0:
            now_ms = struct.pack(">Q", time.time_ns() // 1_000_000)
            self._stamp_columns(self._time_position, now_ms * count, 8, end)
        return memoryview(self._buffer)[:end]

    def stamp_time(self, now_ns: int) -> None:
        """Write a time into the first eight bytes of the first message's body."""
        struct.pack_into(">Q", self._buffer, self.body_position, now_ns)

    def _stamp_columns(self, position: int, values: bytes, width: int, end: int) -> None:
        """Write values of `width` bytes at a position of each message up to `end`."""
        for byte in range(width):
            self._buffer[position + byte : end : self.bytes_each] = values[byte::width]


def _transfers(payload: bytes, frame_bytes_max: int) -> list[bytes]:
    """Return the transfer frames of a payload: the first has the ids, later ones have nulls instead."""
    room = frame_bytes_max - _FIRST_TRANSFER_BYTES
    identity = wire.uint(0) + wire.binary(b"\0\0\0\0") + wire.ZERO
    parts = []
    for start in range(0, len(payload), room):
        more = wire.boolean(start + room < len(payload))
        fields = identity if start == 0 else wire.NULL * 3
        head = wire.ZERO + fields + b"\x42" + more
        transfer = bytes((0x00, 0x53, wire.TRANSFER, 0xC0, len(head) + 1, 6)) + head
        parts.append(wire.encode_frame(transfer + payload[start : start + room]))
    return parts
