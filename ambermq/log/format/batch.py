"""One batch: what one write added to the log, believed or refused as a whole.

    offset width field
     0     u32   magic             "AMBB"; zero where nothing was ever written
     4     u32   length            of the whole batch: this header, records, meta, bodies and padding
     8     u32   head_crc          CRC-32C(salt as u32, header[0:8], header[12:64], records, meta)
    12     u32   body_crc          CRC-32C(bodies as they lie here)
    16     i64   base_offset
    24     i64   base_timestamp    microseconds UTC
    32     i64   durable_end       what was durable when this was written
    40     u32   count             of records
    44     u32   flags             1 KEPT: records that were picked from a longer log, not to be folded
                                   2 COMPRESSED: the bodies are one zstandard frame (see compression.py)
    48     u32   meta_bytes
    52     u32   body_bytes        as they lie here
    56     u32   epoch
    60     u32   plain_bytes       what the frame holds, with COMPRESSED; else 0
    64     count x 48 bytes        records (see record.py)
           meta_bytes              the metas, in record order
           body_bytes              the bodies, in record order, or the frame that holds them
           0 to 7 zeros            so that the next batch starts at a multiple of 8

Little-endian. Rules: the head CRC starts with the segment's random salt, so a batch of another segment never passes;
it covers magic and length too, for a flipped bit there once cut half a log silently. Bodies have a CRC of their own, so
that a fold never reads them. Every length is held against its bound before it is used. Padding belongs to no CRC and
is checked to be zero.
"""

from collections.abc import Iterator, Sequence
from struct import Struct
from typing import NamedTuple

import msgspec

from ambermq.log.buffer import Buffer
from ambermq.log.format.checksum import crc32c
from ambermq.log.format.record import RECORD, Record

__all__ = [
    "BATCH_ALIGNMENT",
    "BATCH_HEADER_BYTES",
    "BATCH_MAGIC",
    "COMPRESSED",
    "KEPT",
    "Batch",
    "BatchHeader",
    "DraftBatch",
    "Mismatch",
    "check",
    "check_bodies",
    "check_bounds",
    "decode_header",
    "encode_batch",
]

BATCH_MAGIC = int.from_bytes(b"AMBB", "little")
BATCH_HEADER_BYTES = 64
BATCH_ALIGNMENT = 8
KEPT = 1
"""The flag of a batch whose records were picked from others (pick.py): what was between them is gone."""
COMPRESSED = 2
"""The flag of a batch whose bodies are one zstandard frame."""

_HEADER = Struct("<IIIIqqqIIIIII")
_FIRST = Struct("<II")
_CRC = Struct("<I")
_REST = Struct("<IqqqIIIIII")
_PADDING = tuple(bytes(-length % BATCH_ALIGNMENT) for length in range(BATCH_ALIGNMENT))
_JOIN_BODY_BYTES_MAX = 4096
"""Bodies of at most this mean size are joined before the CRC and the write; larger ones are worth a call each."""


class BatchHeader(NamedTuple):
    """The 64 bytes in front of a batch."""

    magic: int
    length: int
    head_crc: int
    body_crc: int
    base_offset: int
    base_timestamp_us: int
    durable_end: int
    count: int  # type: ignore[assignment]  # hides tuple.count, which nobody calls
    flags: int
    meta_bytes: int
    body_bytes: int
    epoch: int
    plain_bytes: int

    @property
    def is_blank(self) -> bool:
        """Whether nothing was ever written here: the batches of the segment end."""
        return self.magic == 0

    @property
    def head_bytes(self) -> int:
        """Bytes of header, records and meta: all that a fold reads, and where the bodies begin."""
        return BATCH_HEADER_BYTES + self.count * RECORD.size + self.meta_bytes

    @property
    def bodies_bytes(self) -> int:
        """Bytes of the bodies themselves, whether or not they lie compressed."""
        return self.plain_bytes if self.flags & COMPRESSED else self.body_bytes


class Mismatch(NamedTuple):
    """How a batch differs from what was written, for a person."""

    expected: str
    found: str


class Batch(NamedTuple):
    """One batch as read back, without its bodies."""

    header: BatchHeader
    records: bytes
    """count x 48 bytes."""

    meta: bytes
    file_id: int
    position: int
    """Of the batch's first byte in its segment."""

    @property
    def next_offset(self) -> int:
        """The offset after its last record; the base offset where it has none."""
        if not self.records:
            return self.header.base_offset
        (last_delta,) = _CRC.unpack_from(self.records, len(self.records) - RECORD.size)
        return self.header.base_offset + int(last_delta) + 1

    def rows(self) -> Iterator[tuple[int, ...]]:
        """Each record's columns in the order of RECORD, deltas as they are."""
        return RECORD.iter_unpack(self.records)

    def record_list(self) -> list[Record]:
        """Each record with its absolute offset and time, its meta, and where its body lies in the plain batch."""
        base_offset, base_timestamp_us = self.header.base_offset, self.header.base_timestamp_us
        records = []
        meta_at, body_at = 0, self.header.head_bytes
        for delta, body_length, meta_length, id_hash, queue, ref, time_delta, count, aux, kind, flags in self.rows():
            meta = self.meta[meta_at : meta_at + meta_length]
            offset, timestamp_us = base_offset + delta, base_timestamp_us + time_delta
            records.append(
                Record(offset, timestamp_us, kind, flags, queue, ref, count, aux, id_hash, meta, body_length, body_at)
            )
            meta_at += meta_length
            body_at += body_length
        return records


class DraftBatch(msgspec.Struct):
    """One batch that is to be written; one is made every tick."""

    base_offset: int
    base_timestamp_us: int = 0
    count: int = 0
    """Of records; a draft sets it when the batch is closed."""

    records: list[bytes] = msgspec.field(default_factory=list)
    meta: list[bytes] = msgspec.field(default_factory=list)
    bodies: list[Buffer] = msgspec.field(default_factory=list)
    """As they will lie there: those of the records, or with COMPRESSED one frame."""

    body_bytes: int = 0
    """The summed length of `bodies`."""

    flags: int = 0
    plain_bytes: int = 0
    """What the frame holds, with COMPRESSED."""

    runs: list[tuple[int, Sequence[Buffer], int]] = msgspec.field(default_factory=list)
    """(first offset, bodies of consecutive records, their summed length), for the hot cache."""

    size: int = BATCH_HEADER_BYTES
    """Bytes on the disk, padding included; a draft sets it when the batch is closed."""


def encode_batch(batch: DraftBatch, *, salt_crc: int, durable_end: int, epoch: int) -> list[Buffer]:
    """Encode one batch as buffers to be written one after the other.

    `salt_crc` is the CRC-32C of the segment's salt as a u32 (`SegmentHeader.salt_crc`). Small bodies come back joined,
    large ones as they are.
    """
    bodies, body_bytes, meta = batch.bodies, batch.body_bytes, b"".join(batch.meta)
    length = BATCH_HEADER_BYTES + batch.count * RECORD.size + len(meta) + body_bytes
    padding = _PADDING[length & 7]
    if body_bytes <= _JOIN_BODY_BYTES_MAX * len(bodies):
        bodies = [b"".join(bodies)]
    body_crc = 0
    for body in bodies:
        body_crc = crc32c(body, body_crc)
    columns = _REST.pack(
        body_crc,
        batch.base_offset,
        batch.base_timestamp_us,
        durable_end,
        batch.count,
        batch.flags,
        len(meta),
        body_bytes,
        epoch,
        batch.plain_bytes,
    )
    first = _FIRST.pack(BATCH_MAGIC, length + len(padding))
    rest = b"".join((columns, *batch.records, meta))
    head_crc = _CRC.pack(crc32c(rest, crc32c(first, salt_crc)))
    if body_bytes <= _JOIN_BODY_BYTES_MAX:
        return [b"".join((first, head_crc, rest, *bodies, padding))]
    return [b"".join((first, head_crc, rest)), *bodies, padding]


def decode_header(buffer: Buffer, position: int = 0) -> BatchHeader:
    """Decode the 64 bytes at `position` of `buffer`, checking nothing of them."""
    return BatchHeader._make(_HEADER.unpack_from(buffer, position))


def check_bounds(header: BatchHeader, *, batch_bytes_max: int) -> Mismatch | None:
    """Tell what cannot be right about the numbers of `header`, before any of them is used to read on; None: nothing."""
    if header.magic != BATCH_MAGIC:
        return Mismatch(f"batch magic {BATCH_MAGIC:#010x}", f"{header.magic:#010x}")
    if not BATCH_HEADER_BYTES <= header.length <= batch_bytes_max or header.length % BATCH_ALIGNMENT:
        return Mismatch(
            f"a multiple of 8 from {BATCH_HEADER_BYTES} to {batch_bytes_max} as batch length", f"{header.length}"
        )
    content_bytes = header.head_bytes + header.body_bytes
    if not 0 <= header.length - content_bytes < BATCH_ALIGNMENT:
        return Mismatch(f"batch length {header.length}", f"{content_bytes} bytes of header, records, meta and bodies")
    if header.flags & COMPRESSED and header.head_bytes + header.plain_bytes > batch_bytes_max:
        room_bytes = batch_bytes_max - header.head_bytes
        return Mismatch(f"at most {room_bytes} bytes of bodies in a compressed batch", f"{header.plain_bytes}")
    return None


def check(salt_crc: int, head: Buffer, *, batch_bytes_max: int) -> Mismatch | None:
    """Tell what is wrong with a batch's header, records and meta; None when they are what was written.

    `head` begins at the batch and holds at least `header.head_bytes` of it, or what there was before the end
    of the file.
    """
    if len(head) < BATCH_HEADER_BYTES:
        return Mismatch(f"{BATCH_HEADER_BYTES} bytes of batch header", f"{len(head)} before the end of the file")
    header = decode_header(head)
    wrong = check_bounds(header, batch_bytes_max=batch_bytes_max)
    if wrong:
        return wrong
    if len(head) < header.head_bytes:
        return Mismatch(
            f"{header.head_bytes} bytes of header, records and meta", f"{len(head)} before the end of the file"
        )
    view = memoryview(head)
    head_crc = crc32c(view[12 : header.head_bytes], crc32c(view[:8], salt_crc))
    if head_crc != header.head_crc:
        return Mismatch(f"head CRC {header.head_crc:#010x}", f"{head_crc:#010x}")
    return None


def check_bodies(header: BatchHeader, bodies: Buffer) -> Mismatch | None:
    """Tell what is wrong with the bodies of a batch whose head is right; None when they are what was written.

    Compressed ones are taken as they lie; compression.py reads them. `bodies` is the batch from `header.head_bytes` to
    `header.length`, padding included, or what there was before the end of the file.
    """
    size = header.length - header.head_bytes
    if len(bodies) < size:
        return Mismatch(f"{size} bytes of bodies and padding", f"{len(bodies)} before the end of the file")
    view = memoryview(bodies)
    body_crc = crc32c(view[: header.body_bytes])
    if body_crc != header.body_crc:
        return Mismatch(f"body CRC {header.body_crc:#010x}", f"{body_crc:#010x}")
    padding = bytes(view[header.body_bytes : size])
    if any(padding):
        return Mismatch("zero padding", padding.hex())
    return None
