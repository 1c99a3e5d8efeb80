r"""The bytes of a backup: a header, the parts in compressed frames, and a table of contents that closes it.

    one file        header | frames of the snapshot | frames of segment 1 | ... | table | trailer
    a directory     TABLE, snapshot.part, segment-0001.part, ...: the same frames, a file each

    header, 64 bytes
    offset width field
     0     8 B   magic      "AMBERBAK"
     8     u32   version    1
    12     u32   zero
    16     16 B  log_id     of the log that it was taken from
    32     i64   end        of the snapshot: all live messages below it are in the backup
    40     i64   time_us    of the last event below the end
    48     12 B  zeros
    60     u32   crc        CRC-32C of bytes 0 to 60

    frame, 16 bytes and its payload
     0     u32   stored     bytes of the payload
     4     u32   length     bytes of the content after decompression; 1 MiB at most
     8     u32   part       number of its part in the table, from 0
    12     u32   crc        CRC-32C of bytes 0 to 12, then of the payload
    16     the payload      one zstandard frame

    table      a JSON object over several lines, closed by a CRC line as the manifest is (crc_document.py)

    trailer, 32 bytes
     0     8 B   magic      "AMBEREND"
     8     u64   position   of the table
    16     u64   length     of the table
    24     u32   zero
    28     u32   crc        CRC-32C of bytes 0 to 28

Little-endian. A snapshot part is a snapshot file. A segment part is a segment file whose batches are marked KEPT.

Rule 1. The reader uses no field before its checksum was right, except lengths within their bounds.
Rule 2. A checksum does not stop an attacker: each length in a table or a frame has a limit here, and the reader never
allocates more.
"""

from struct import Struct
from typing import Annotated, Final, NamedTuple

import msgspec
from msgspec import Meta

from ambermq.log.errors import DamageError, ForeignError
from ambermq.log.format.checksum import crc32c
from ambermq.log.format.crc_document import read_document, with_crc_line

__all__ = [
    "FRAME_BYTES_MAX",
    "FRAME_HEADER_BYTES",
    "HEADER_BYTES",
    "PARTS_MAX",
    "SEGMENT_BYTES_MAX",
    "SNAPSHOT_BYTES_MAX",
    "SNAPSHOT_PART",
    "TABLE_BYTES_MAX",
    "TABLE_NAME",
    "TRAILER_BYTES",
    "VERSION",
    "BackupPart",
    "Frame",
    "Head",
    "SegmentPart",
    "Table",
    "check_frame",
    "decode_frame",
    "decode_header",
    "decode_table",
    "decode_trailer",
    "encode_frame",
    "encode_header",
    "encode_table",
    "encode_trailer",
    "part_bytes_max",
    "segment_part_name",
]

VERSION: Final = 1
TABLE_NAME: Final = "TABLE"
"""The name of the table's file in a directory; a directory with this file is a backup."""
HEADER_BYTES: Final = 64
FRAME_HEADER_BYTES: Final = 16
TRAILER_BYTES: Final = 32
FRAME_BYTES_MAX: Final = 1 << 20
"""The maximum length of a frame before compression."""
TABLE_BYTES_MAX: Final = 16 << 20
PARTS_MAX: Final = 1 << 16
"""The maximum number of parts: 4 TiB with segments of 64 MiB."""
SNAPSHOT_BYTES_MAX: Final = 2 << 30
"""The maximum length of a snapshot before compression: more than 200,000,000 waiting messages."""
SEGMENT_BYTES_MAX: Final = 128 << 20
"""The maximum length of a segment before compression; a reader holds one at a time.

The writer ends a segment with the batch that reaches half of this.
"""
SNAPSHOT_PART: Final = "snapshot"
"""The name of the first part."""
STORED_BYTES_MAX: Final = FRAME_BYTES_MAX + (64 << 10)
"""The maximum length of a compressed frame: content that does not compress grows a little."""

_MAGIC: Final = b"AMBERBAK"
_END_MAGIC: Final = b"AMBEREND"
_HEADER: Final = Struct("<8sII16sqq12s")
_FRAME: Final = Struct("<III")
_TRAILER: Final = Struct("<8sQQI")
_CRC: Final = Struct("<I")
_NAME_CHARACTERS_MAX: Final = 1024

_Offset = Annotated[int, Meta(ge=0, lt=1 << 47)]
_TimeUs = Annotated[int, Meta(ge=0, le=253_402_300_799_999_999)]
"""A time until the end of the year 9999."""
_Count = Annotated[int, Meta(ge=0, lt=1 << 62)]
_U32 = Annotated[int, Meta(ge=0, lt=1 << 32)]
_LogId = Annotated[str, Meta(pattern="^[0-9a-f]{32}$")]
_Name = Annotated[str, Meta(min_length=1, max_length=_NAME_CHARACTERS_MAX)]


class Head(NamedTuple):
    """The fields of the header of a backup."""

    log_id: bytes
    """The id of the log from which it was exported, 16 bytes."""
    end: int
    """The end of the snapshot."""
    time_us: int
    """The time of the last event below the end."""


class Frame(NamedTuple):
    """The 16 bytes before a payload."""

    stored: int
    length: int
    part: int
    crc: int


class SegmentPart(msgspec.Struct, frozen=True):
    """The fields of a segment that a restore needs."""

    base_offset: _Offset
    """The segment answers for offsets from this one ..."""
    next_offset: _Offset
    """... to below this one."""
    record_count: _Count
    """The number of live messages and chunks in it."""


class BackupPart(msgspec.Struct, frozen=True):
    """One file of the log in a backup."""

    name: _Name
    """The name of its file in a directory, without the ending."""
    position: _Count
    """The position of its first frame in its file."""
    stored: _Count
    """The length of its frames in bytes."""
    length: _Count
    """The length of its content in bytes."""
    crc32c: _U32
    """The checksum of its content."""
    segment: SegmentPart | None = None
    """The fields of a segment; None for the snapshot."""


class Table(msgspec.Struct, frozen=True):
    """The table of contents of a backup."""

    version: int
    log_id: _LogId
    """The id of the log from which it was exported, in hex."""
    epoch: _U32
    """The epoch of that log."""
    name: _Name
    """The name of the snapshot."""
    end: _Offset
    """The snapshot is the fold of all events below this offset."""
    time_us: _TimeUs
    """The time of the last of these events."""
    created_us: _TimeUs
    """The time at which the snapshot was taken."""
    queue_count: _Count
    """The number of queues in the snapshot."""
    message_count: _Count
    """The number of messages on them, waiting or acquired; one on two queues counts twice."""
    parts: Annotated[tuple[BackupPart, ...], Meta(min_length=1, max_length=PARTS_MAX)]
    """The snapshot, then the segments in order of their offsets."""

    @property
    def head(self) -> Head:
        """The fields that the header repeats."""
        return Head(bytes.fromhex(self.log_id), self.end, self.time_us)


def part_bytes_max(number: int) -> int:
    """Return the maximum length of the content of a part, by its number."""
    return SEGMENT_BYTES_MAX if number else SNAPSHOT_BYTES_MAX


def segment_part_name(number: int) -> str:
    """Return the name of a part that holds a segment."""
    return f"segment-{number:04}"


def encode_header(head: Head) -> bytes:
    """Return the first 64 bytes of a backup in one file."""
    fields = _HEADER.pack(_MAGIC, VERSION, 0, head.log_id, head.end, head.time_us, b"")
    return fields + _CRC.pack(crc32c(fields))


def decode_header(head: bytes, file: str) -> Head:
    """Return the fields of a header. Raise ForeignError if it is no backup or a newer one, DamageError if damaged."""
    if not head.startswith(_MAGIC):
        raise ForeignError(f"{file} is no backup: expected magic {_MAGIC!r}, found {head[:8]!r}")
    if len(head) < HEADER_BYTES:
        raise DamageError(file, len(head), f"{HEADER_BYTES} bytes of header", "the end of a truncated file")
    _, version, _, log_id, end, time_us, _ = _HEADER.unpack_from(head)
    if version != VERSION:
        raise _newer(file, version)
    _check_crc(head[:HEADER_BYTES], file, 0, "header")
    return Head(log_id, end, time_us)


def encode_frame(payload: bytes, *, length: int, part: int) -> list[bytes]:
    """Return a frame as buffers to write one after the other; `length` is the length before compression."""
    fields = _FRAME.pack(len(payload), length, part)
    return [fields + _CRC.pack(crc32c(payload, crc32c(fields))), payload]


def decode_frame(head: bytes, file: str, position: int) -> Frame:
    """Return the header of a frame, with its bounds checked, but not its CRC. Raises DamageError."""
    if len(head) < FRAME_HEADER_BYTES:
        raise DamageError(file, position + len(head), "a frame", "the end of a truncated file")
    frame = Frame(*_FRAME.unpack_from(head), *_CRC.unpack_from(head, _FRAME.size))
    if frame.length > FRAME_BYTES_MAX or frame.stored > STORED_BYTES_MAX:
        found = f"{frame.length} in {frame.stored}"
        raise DamageError(file, position, f"a frame of {FRAME_BYTES_MAX} bytes at most", found)
    return frame


def check_frame(frame: Frame, payload: bytes, file: str, position: int) -> None:
    """Raise DamageError if a frame was truncated or its CRC is wrong."""
    if len(payload) < frame.stored:
        end = position + FRAME_HEADER_BYTES + len(payload)
        raise DamageError(file, end, f"{frame.stored} bytes of a frame", "the end of a truncated file")
    crc = crc32c(payload, crc32c(_FRAME.pack(*frame[:3])))
    if crc != frame.crc:
        raise DamageError(file, position, f"frame CRC {frame.crc:#010x}", f"{crc:#010x}")


def encode_table(table: Table) -> bytes:
    """Return the bytes of a table of contents."""
    return with_crc_line(msgspec.json.format(msgspec.json.encode(table), indent=1) + b"\n")


def decode_table(text: bytes, file: str) -> Table:
    """Return the table in `text`. Raises DamageError with the name `file`, and ForeignError if it is newer."""
    table = read_document(text, Table, file=file, what="backup", version=VERSION)
    _check_table(table, file)
    return table


def _check_table(table: Table, file: str) -> None:
    """Raise DamageError unless the parts are a snapshot and segments that answer for all offsets below its end."""
    if not table.name.isprintable() or "/" in table.name:
        raise DamageError(file, 0, "a snapshot's name", repr(table.name))
    end = 0
    for number, part in enumerate(table.parts):
        name = segment_part_name(number) if number else SNAPSHOT_PART
        if part.name != name or (part.segment is None) != (not number) or part.length > part_bytes_max(number):
            expected = f"{name} of {part_bytes_max(number)} bytes at most as part {number}"
            raise DamageError(file, 0, expected, f"{part!r:.200}")
        if part.segment is not None:
            if part.segment.base_offset != end:
                raise DamageError(file, 0, f"a segment from {end} as part {number}", f"{part.segment}")
            end = part.segment.next_offset
    if end != table.end and len(table.parts) > 1:
        raise DamageError(file, 0, f"segments up to {table.end}", f"up to {end}")


def encode_trailer(*, position: int, length: int) -> bytes:
    """Return the last 32 bytes of a backup in one file."""
    fields = _TRAILER.pack(_END_MAGIC, position, length, 0)
    return fields + _CRC.pack(crc32c(fields))


def decode_trailer(trailer: bytes, file: str, size: int) -> tuple[int, int]:
    """Return position and length of the table in a file of `size` bytes; raise DamageError."""
    start = max(0, size - TRAILER_BYTES)
    if len(trailer) < TRAILER_BYTES or not trailer.startswith(_END_MAGIC):
        raise DamageError(file, start, f"a trailer with magic {_END_MAGIC!r}", "other bytes: the file was truncated")
    _check_crc(trailer, file, start, "trailer")
    _, position, length, _ = _TRAILER.unpack_from(trailer)
    if position + length != start or length > TABLE_BYTES_MAX:
        raise DamageError(file, start, f"a table that ends at {start}", f"{length} bytes at {position}")
    return position, length


def _check_crc(fields: bytes, file: str, position: int, name: str) -> None:
    """Raise DamageError unless the last four bytes of `fields` are the CRC of the others."""
    (expected,) = _CRC.unpack(fields[-4:])
    found = crc32c(fields[:-4])
    if found != expected:
        raise DamageError(file, position, f"{name} CRC {expected:#010x}", f"{found:#010x}")


def _newer(file: str, version: object) -> ForeignError:
    return ForeignError(f"{file} has backup version {version}, this program reads version {VERSION}")
