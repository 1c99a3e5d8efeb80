"""One segment: a file of batches, named by its file id alone.

    offset width field
     0     8 B   magic         "AMBERSEG"
     8     u32   version       1; 2 where batches may be COMPRESSED (see batch.py)
    12     u32   salt          random; begins the head CRC of every batch in the file
    16     16 B  log id
    32     u64   file id
    40     i64   base offset   of the first record
    48     u32   epoch         in which the segment was begun
    52     u32   crc           CRC-32C of bytes 0 to 52
    56     zeros up to 4096, then the batches back to back

Little-endian. The file exists, allocated and full of zeros, before it is needed; this header is written in one call
with the first batch, so a file whose header is zeros is a spare that was never used. File ids are never used twice.
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
    "segment_path",
]

SEGMENT_HEADER_BYTES = 4096
PLAIN_VERSION = 1
"""Of a segment none of whose batches is compressed."""

COMPRESSIBLE_VERSION = 2
"""Of one whose batches may be: who cannot decompress refuses it as a whole."""

_MAGIC = b"AMBERSEG"
_HEADER = Struct("<8sII16sQqI")
_CRC = Struct("<I")


def segment_path(directory: str, file_id: int) -> str:
    """Where the segment lies below the log's directory."""
    return f"{directory}/segments/{file_id:016x}.log"


def index_path(directory: str, file_id: int) -> str:
    """Where the segment's index lies, which is derived and may be missing."""
    return f"{directory}/segments/{file_id:016x}.index"


class Segment(NamedTuple):
    """A sealed segment: its file and the offsets that it holds, compacted ones included."""

    file_id: int
    base_offset: int
    next_offset: int
    """The offset after its last one; the base of the segment that follows."""

    size: int
    """Bytes up to the end of its last batch, header included; the file may be longer."""

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
        """Whether its batches may be compressed."""
        return self.version == COMPRESSIBLE_VERSION

    @property
    def salt_crc(self) -> int:
        """What the head CRCs of the segment's batches continue from."""
        return crc32c(_CRC.pack(self.salt))

    def encode(self) -> bytes:
        """Encode it as 4096 bytes."""
        fields = _HEADER.pack(_MAGIC, self.version, *self[:-1])
        return (fields + _CRC.pack(crc32c(fields))).ljust(SEGMENT_HEADER_BYTES, b"\0")

    @classmethod
    def decode(cls, buffer: Buffer, file: str) -> "SegmentHeader | None":
        """Read it back; None where nothing was written yet.

        `buffer` holds the first 4096 bytes of `file`, or fewer where it is shorter. Raises ForeignError where it is no
        segment or of a newer version, and DamageError where it is one but not as it was written.
        """
        head = bytes(buffer[:SEGMENT_HEADER_BYTES])
        if not any(head):
            return None
        if len(head) < SEGMENT_HEADER_BYTES:
            raise DamageError(file, 0, f"{SEGMENT_HEADER_BYTES} bytes of segment header", f"{len(head)}")
        magic, version, salt, log_id, file_id, base_offset, epoch = _HEADER.unpack_from(head)
        if magic != _MAGIC:
            raise ForeignError(f"{file} is no segment: expected magic {_MAGIC!r}, found {magic!r}")
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
