"""One record: 48 bytes of fixed columns, then a share of its batch's meta and of its bodies.

    offset width field             meaning
     0     u32   offset_delta      offset less the batch's base offset
     4     u32   body_length       bytes of the bodies that are this record's
     8     u32   meta_length       bytes of the meta that are this record's
    12     u32   id_hash           hash of the message-id, 0 without one
    16     i64   queue             a queue's identity, 0 without one
    24     i64   ref               another record's offset, 0 without one
    32     i64   timestamp_delta   microseconds after the batch's base timestamp
    40     u32   count
    44     u16   aux
    46     u8    type
    47     u8    flags

Little-endian. The log knows no types: queue, ref, count, aux, type and flags mean what the engine says. No record has a
CRC of its own: one a batch costs 80 ns, one a record would double the cost of a message.
"""

from struct import Struct
from typing import NamedTuple

__all__ = ["AUX_MAX", "RECORD", "RECORD_HEAD", "RECORD_TAIL", "Record"]

RECORD = Struct("<IIIIqqqIHBB")
"""A whole record; unpacks to (offset_delta, body_length, meta_length, id_hash, queue, ref, timestamp_delta, count, aux,
type, flags)."""

AUX_MAX = 0xFFFF
"""The largest number that `aux` can be."""

RECORD_HEAD = Struct("<IIII")
"""The columns in which the records of one run differ: offset_delta, body_length, meta_length, id_hash."""

RECORD_TAIL = Struct("<qqqIHBB")
"""The columns in which they are alike: queue, ref, timestamp_delta, count, aux, type, flags."""


class Record(NamedTuple):
    """One record as read back, with its absolute offset and time."""

    offset: int
    """Its number in the log."""

    timestamp_us: int
    """Microseconds UTC."""

    type: int
    flags: int
    queue: int
    ref: int
    count: int  # type: ignore[assignment]  # hides tuple.count, which nobody calls
    aux: int
    id_hash: int

    meta: bytes
    """Its share of the batch's meta."""

    body_length: int
    """Bytes of its body."""

    body_position: int
    """The first byte of its body, counted from the first byte of the batch as it is when it is not compressed."""
