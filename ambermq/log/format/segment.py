"""One segment: a file of batches. The file id alone is its name.

    offset width field
     0     8 B   magic         "AMBERSEG"
     8     u32   version       1; 2 if batches may be COMPRESSED (see batch.py)
    12     u32   salt          random; begins the head CRC of every batch in the file
    16     16 B  log id
    32     u64   file id
    40     i64   base offset   of the first record
    48     u32   epoch         the epoch at the start of the segment
    52     u32   crc           CRC-32C of bytes 0 to 52
    56     zeros up to 4096, then the batches back to back

Little-endian. The file exists, allocated and full of zeros, before the log needs it. One call writes this header with
the first batch, so a file whose header is zeros is an unused spare. No file id is used twice.
"""

from struct import Struct
from typing import NamedTuple

from ambermq.log.buffer import Buffer
from ambermq.log.errors import DamageError, ForeignError
from ambermq.log.format.checksum import crc32c

__all__ = [
    "COMPRESSIBLE_VERSION",
    "PLAIN_VERSION",
    "SEGMENT_HEADER_BYTES",
    "Segment",
    "SegmentHeader",
    "index_path",
    "is_partial_header",
    "segment_path",
]

SEGMENT_HEADER_BYTES = 4096
PLAIN_VERSION = 1
"""The version of a segment without a compressed batch."""

COMPRESSIBLE_VERSION = 2
"""The version of a segment whose batches may be compressed. A reader without zstandard refuses the whole file."""

_MAGIC = b"AMBERSEG"
_HEADER = Struct("<8sII16sQqI")
_CRC = Struct("<I")


def segment_path(directory: str, file_id: int) -> str:
    """Return the path of a segment of the log in `directory`."""
    return f"{directory}/segments/{file_id:016x}.log"


def index_path(directory: str, file_id: int) -> str:
    """Return the path of a segment's index. An index is derived data and may be missing."""
    return f"{directory}/segments/{file_id:016x}.index"


def is_partial_header(head: bytes) -> bool:
    """Return whether the bytes of a whole file are the begin of a segment's header: its first write failed."""
    return len(head) < SEGMENT_HEADER_BYTES and bool(head) and head[: len(_MAGIC)] == _MAGIC[: len(head)]


class Segment(NamedTuple):
    """A sealed segment: its file and its range of offsets, compacted ones included."""

    file_id: int
    base_offset: int
    next_offset: int
    """The offset after the last one; the base offset of the next segment."""

    size: int
    """Bytes up to the end of the last batch, header included. The file may be longer."""

    path: str


class SegmentHeader(NamedTuple):
    """The first 4096 bytes of a segment."""

    salt: int
    log_id: bytes
    """16 bytes, the same in every segment of a log."""

    file_id: int
    base_offset: int
    epoch: int
    version: int = PLAIN_VERSION

    @property
    def is_compressible(self) -> bool:
        """Whether the batches may be compressed."""
        return self.version == COMPRESSIBLE_VERSION

    @property
    def salt_crc(self) -> int:
        """The CRC of the salt; the head CRC of every batch in the segment continues from it."""
        return crc32c(_CRC.pack(self.salt))

    def encode(self) -> bytes:
        """Return the header as 4096 bytes."""
        fields = _HEADER.pack(_MAGIC, self.version, *self[:-1])
        return (fields + _CRC.pack(crc32c(fields))).ljust(SEGMENT_HEADER_BYTES, b"\0")

    @classmethod
    def decode(cls, buffer: Buffer, file: str) -> "SegmentHeader | None":
        """Return the header in `buffer`, or None if nothing was written yet.

        `buffer` holds the first 4096 bytes of `file`, or fewer if the file is shorter. Raises ForeignError if the file
        has a newer version, and DamageError if the header is not what was written.
        """
        head = bytes(buffer[:SEGMENT_HEADER_BYTES])
        if not any(head):
            return None
        if len(head) < SEGMENT_HEADER_BYTES:
            raise DamageError(file, 0, f"{SEGMENT_HEADER_BYTES} bytes of segment header", f"{len(head)}")
        magic, version, salt, log_id, file_id, base_offset, epoch = _HEADER.unpack_from(head)
        if magic != _MAGIC:
            # A manifest names only segments, so another magic is no other kind of file.
            raise DamageError(file, 0, f"a segment header with magic {_MAGIC!r}", f"{magic!r}")
        (crc,) = _CRC.unpack_from(head, _HEADER.size)
        actual = crc32c(head[: _HEADER.size])
        if crc != actual:
            raise DamageError(file, 0, f"segment header CRC {crc:#010x}", f"{actual:#010x}")
        if not PLAIN_VERSION <= version <= COMPRESSIBLE_VERSION:
            known = f"{PLAIN_VERSION} to {COMPRESSIBLE_VERSION}"
            raise ForeignError(f"{file} has segment version {version}, this program reads versions {known}")
        if any(head[_HEADER.size + _CRC.size :]):
            raise DamageError(file, _HEADER.size + _CRC.size, "zeros to the end of the segment header", "other bytes")
        return cls(salt, log_id, file_id, base_offset, epoch, version)
