"""One batch: the records of one write. A reader accepts or refuses it as a whole.

    offset width field
     0     u32   magic             "AMBB"; zero if nothing was ever written here
     4     u32   length            of the whole batch: this header, records, meta, bodies and padding
     8     u32   head_crc          CRC-32C(salt as u32, header[0:8], header[12:64], records, meta)
    12     u32   body_crc          CRC-32C(bodies as stored)
    16     i64   base_offset
    24     i64   base_timestamp    microseconds UTC
    32     i64   durable_end       the durable end of the log when this batch was written
    40     u32   count             number of records
    44     u32   flags             1 KEPT: records that a compaction selected from a longer log; not to be folded
                                   2 COMPRESSED: the bodies are one zstandard frame (see compression.py)
    48     u32   meta_bytes
    52     u32   body_bytes        as stored
    56     u32   epoch
    60     u32   plain_bytes       decompressed size of the frame, with COMPRESSED; else 0
    64     count x 48 bytes        records (see record.py)
           meta_bytes              the metas, in record order
           body_bytes              the bodies, in record order, or the frame that holds them
           0 to 7 zeros            so that the next batch starts at a multiple of 8

Little-endian.

Rule 1. The head CRC starts with the segment's random salt, so a batch of another segment never passes the check.
Rule 2. The head CRC covers magic and length too: a flipped bit in either must not end the log silently.
Rule 3. Bodies have a CRC of their own, so that a fold never reads them.
Rule 4. Every length is compared with its bound before it is used.
Rule 5. No CRC covers the padding; a check that it is zero does.
"""

from collections.abc import Callable, Iterator, Sequence
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
"""The flag of a batch that a compaction wrote: it holds selected records, and those between them are gone."""
COMPRESSED = 2
"""The flag of a batch whose bodies are one zstandard frame."""

_HEADER = Struct("<IIIIqqqIIIIII")
_FIRST = Struct("<II")
_CRC = Struct("<I")
_REST = Struct("<IqqqIIIIII")
_PADDING = tuple(bytes(-length % BATCH_ALIGNMENT) for length in range(BATCH_ALIGNMENT))
_JOIN_BODY_BYTES_MAX = 4096
"""Bodies up to this mean size are joined before the CRC and the write. Larger ones get a call each."""


class BatchHeader(NamedTuple):
    """The 64 bytes in front of a batch."""

    magic: int
    length: int
    head_crc: int
    body_crc: int
    base_offset: int
    base_timestamp_us: int
    durable_end: int
    count: int  # type: ignore[assignment]  # hides tuple.count, which has no caller
    flags: int
    meta_bytes: int
    body_bytes: int
    epoch: int
    plain_bytes: int

    @property
    def head_bytes(self) -> int:
        """The bytes of header, records and meta. A fold reads no more; the bodies begin here."""
        return BATCH_HEADER_BYTES + self.count * RECORD.size + self.meta_bytes

    @property
    def bodies_bytes(self) -> int:
        """The decompressed size of the bodies."""
        return self.plain_bytes if self.flags & COMPRESSED else self.body_bytes


class Mismatch(NamedTuple):
    """The difference between a batch and what was written, as text for an error message."""

    expected: str
    found: str


class Batch(NamedTuple):
    """One batch that was read from a segment, without its bodies."""

    header: BatchHeader
    records: bytes
    """count x 48 bytes."""

    meta: bytes
    file_id: int
    position: int
    """The position of the batch's first byte in its segment."""

    @property
    def next_offset(self) -> int:
        """The offset after the last record; the base offset if the batch has no record."""
        if not self.records:
            return self.header.base_offset
        (last_delta,) = _CRC.unpack_from(self.records, len(self.records) - RECORD.size)
        return self.header.base_offset + int(last_delta) + 1

    def rows(self) -> Iterator[tuple[int, ...]]:
        """Return an iterator over each record's columns in the order of RECORD, with deltas unchanged."""
        return RECORD.iter_unpack(self.records)

    def record_list(self) -> list[Record]:
        """Return each record with its absolute offset and time, its meta, and the position of its body."""
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
    """One batch to be written. Every tick makes one."""

    base_offset: int
    base_timestamp_us: int = 0
    count: int = 0
    """Number of records. A draft sets it when it closes the batch."""

    records: list[bytes] = msgspec.field(default_factory=list)
    meta: list[bytes] = msgspec.field(default_factory=list)
    bodies: list[Buffer] = msgspec.field(default_factory=list)
    """The bodies as they will be stored: those of the records, or with COMPRESSED one frame."""

    body_bytes: int = 0
    """The summed length of `bodies`."""

    flags: int = 0
    plain_bytes: int = 0
    """The decompressed size of the frame, with COMPRESSED."""

    runs: list[tuple[int, Sequence[Buffer], int]] = msgspec.field(default_factory=list)
    """(first offset, bodies of consecutive records, their summed length), for the hot cache."""

    size: int = BATCH_HEADER_BYTES
    """Bytes on the disk, padding included. A draft sets it when it closes the batch."""


def encode_batch(batch: DraftBatch, *, salt_crc: int, durable_end: int, epoch: int) -> list[Buffer]:
    """Return one batch as buffers to be written one after the other.

    `salt_crc` is the CRC-32C of the segment's salt as a u32 (`SegmentHeader.salt_crc`). Small bodies are joined into
    one buffer; large ones keep their own.
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
    """Return the header in the 64 bytes at `position` of `buffer`, without any check."""
    return BatchHeader._make(_HEADER.unpack_from(buffer, position))


def check_bounds(header: BatchHeader, *, batch_bytes_max: int) -> Mismatch | None:
    """Return the first number of `header` that is out of bounds, or None; called before any number is used."""
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


def check(
    salt_crc: int, head: Buffer, *, batch_bytes_max: int, checksum: Callable[..., int] = crc32c
) -> Mismatch | None:
    """Return what is wrong with a batch's header, records and meta, or None if they are what was written.

    `head` begins at the batch. It holds at least `header.head_bytes`, or fewer if the file ends before.
    """
    if len(head) < BATCH_HEADER_BYTES:
        return Mismatch(f"{BATCH_HEADER_BYTES} bytes of batch header", f"{len(head)} before the end of the file")
    header = decode_header(head)
    mismatch = check_bounds(header, batch_bytes_max=batch_bytes_max)
    if mismatch:
        return mismatch
    if len(head) < header.head_bytes:
        return Mismatch(
            f"{header.head_bytes} bytes of header, records and meta", f"{len(head)} before the end of the file"
        )
    view = memoryview(head)
    head_crc = checksum(view[12 : header.head_bytes], checksum(view[:8], salt_crc))
    if head_crc != header.head_crc:
        return Mismatch(f"head CRC {header.head_crc:#010x}", f"{head_crc:#010x}")
    return None


def check_bodies(header: BatchHeader, bodies: Buffer, *, checksum: Callable[..., int] = crc32c) -> Mismatch | None:
    """Return what is wrong with the bodies of a batch whose head is right, or None if they are what was written.

    Compressed bodies are checked as stored; compression.py decompresses them. `bodies` is the batch from
    `header.head_bytes` to `header.length`, padding included, or fewer bytes if the file ends before.
    """
    size = header.length - header.head_bytes
    if len(bodies) < size:
        return Mismatch(f"{size} bytes of bodies and padding", f"{len(bodies)} before the end of the file")
    view = memoryview(bodies)
    body_crc = checksum(view[: header.body_bytes])
    if body_crc != header.body_crc:
        return Mismatch(f"body CRC {header.body_crc:#010x}", f"{body_crc:#010x}")
    padding = bytes(view[header.body_bytes : size])
    if any(padding):
        return Mismatch("zero padding", padding.hex())
    return None
