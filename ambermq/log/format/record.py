"""One record: 48 bytes of fixed columns, and its part of the batch's meta and bodies.

    offset width field             meaning
     0     u32   offset_delta      offset less the batch's base offset
     4     u32   body_length       bytes of this record's body
     8     u32   meta_length       bytes of this record's meta
    12     u32   id_hash           hash of the message-id; 0 if there is none
    16     i64   queue             the identity of a queue; 0 if there is none
    24     i64   ref               the offset of another record; 0 if there is none
    32     i64   timestamp_delta   microseconds after the batch's base timestamp
    40     u32   count
    44     u16   aux
    46     u8    type
    47     u8    flags

Little-endian. The log knows no record types: the engine defines the meaning of queue, ref, count, aux, type and flags.
A record has no CRC of its own: one CRC a batch costs 80 ns, one a record would double the cost of a message.
"""

from struct import Struct
from typing import NamedTuple

__all__ = ["AUX_MAX", "RECORD", "RECORD_HEAD", "RECORD_TAIL", "Record"]

RECORD = Struct("<IIIIqqqIHBB")
"""A whole record.

It unpacks to (offset_delta, body_length, meta_length, id_hash, queue, ref, timestamp_delta, count, aux, type, flags).
"""

AUX_MAX = 0xFFFF
"""The largest value of `aux`."""

RECORD_HEAD = Struct("<IIII")
"""The columns that differ between the records of one run: offset_delta, body_length, meta_length, id_hash."""

RECORD_TAIL = Struct("<qqqIHBB")
"""The columns that are equal in the records of one run: queue, ref, timestamp_delta, count, aux, type, flags."""


class Record(NamedTuple):
    """One record that was read from a batch, with its absolute offset and time."""

    offset: int
    """The record's number in the log."""

    timestamp_us: int
    """Microseconds UTC."""

    type: int
    flags: int
    queue: int
    ref: int
    count: int  # type: ignore[assignment]  # hides tuple.count, which has no caller
    aux: int
    id_hash: int

    meta: bytes
    """The record's part of the batch's meta."""

    body_length: int
    """The size of the body."""

    body_position: int
    """The position of the body, counted from the first byte of the decompressed batch."""
