"""The header of a segment, even if the header is damaged or zeroed.

The batches of a segment need only the salt of its header. The head CRC of a batch continues from the salt, and a CRC is
linear, so each batch has one salt that fits it. Two batches that agree prove it.

Rule 1. A broker that serves goes on reading a sealed segment whose header is damaged, and reports the damage. A start
and a verification refuse the segment.
Rule 2. A salt counts if the first batch continues from the header's own salt, if two batches have it, or if the CRC of
the header is right with it.
Rule 3. Bodies may hold what looks like batches, of a salt that a publisher chose. If two salts have two batches each,
none counts.
"""

from collections.abc import Callable
from typing import Final

from ambermq.log.errors import DamageError, ForeignError, LogError
from ambermq.log.format.batch import BATCH_ALIGNMENT, BATCH_HEADER_BYTES, check_bounds, decode_header
from ambermq.log.format.checksum import crc32c
from ambermq.log.format.segment import COMPRESSIBLE_VERSION, SEGMENT_HEADER_BYTES, SegmentHeader
from ambermq.log.segments.batch_walk import BatchWalk, find_magic
from ambermq.log.storage.interface import File

__all__ = ["readable_header", "surviving_header"]

_SALT: Final = slice(12, 16)
_LOG_ID: Final = slice(16, 32)
_FILE_ID: Final = slice(32, 40)
_CRC: Final = slice(52, 56)
_HEADS_MAX: Final = 4096
"""The most heads that are compared."""


def readable_header(file: File, path: str, *, batch_bytes_max: int) -> SegmentHeader:
    """Return the header of a segment, or one with the right salt if the header is damaged.

    Raises DamageError or ForeignError if no salt fits.
    """
    head = file.read(SEGMENT_HEADER_BYTES, 0)
    fault: LogError = DamageError(path, 0, "a segment header", "zeros")
    try:
        header = SegmentHeader.decode(head, path)
    except (DamageError, ForeignError) as error:
        header, fault = None, error
    if header is None:
        header = surviving_header(file, head, batch_bytes_max=batch_bytes_max)
    if header is None:
        raise fault
    return header


def surviving_header(file: File, head: bytes, *, batch_bytes_max: int) -> SegmentHeader | None:
    """Return a header with the salt of the segment's batches, or None if no salt is proved.

    `head` are the bytes of the damaged header. The fields but the salt are the damaged ones.
    """
    head = head.ljust(SEGMENT_HEADER_BYTES, b"\0")
    own = _header_with(head, int.from_bytes(head[_SALT], "little"))
    walk = _walk(file, own, batch_bytes_max)
    if any(head) and next(iter(walk), None) is not None:
        return own
    salts, proved = set[int](), set[int]()
    position, end = SEGMENT_HEADER_BYTES, file.size()
    for _ in range(_HEADS_MAX):
        position = find_magic(walk, position)
        if position >= end:
            break
        batch_head = _head_at(file, position, batch_bytes_max)
        if batch_head is None:
            position += BATCH_ALIGNMENT
            continue
        salt = _salt_of(batch_head)
        if _is_of_header(head, salt):
            return _header_with(head, salt)
        if salt in salts:
            proved.add(salt)
        salts.add(salt)
        position += decode_header(batch_head).length
    return _header_with(head, proved.pop()) if len(proved) == 1 else None


def _header_with(head: bytes, salt: int) -> SegmentHeader:
    file_id = int.from_bytes(head[_FILE_ID], "little")
    # The version is unknown, so the batches may be compressed.
    return SegmentHeader(salt, head[_LOG_ID], file_id, base_offset=0, epoch=0, version=COMPRESSIBLE_VERSION)


def _is_of_header(head: bytes, salt: int) -> bool:
    """Return whether the CRC of a header is right with another salt."""
    fields = head[: _SALT.start] + salt.to_bytes(4, "little") + head[_SALT.stop : _CRC.start]
    return any(fields[: _SALT.start]) and crc32c(fields) == int.from_bytes(head[_CRC], "little")


def _head_at(file: File, position: int, batch_bytes_max: int) -> bytes | None:
    """Return the bytes of a head at a position, or None if the lengths in it cannot be right."""
    start = file.read(BATCH_HEADER_BYTES, position)
    if len(start) < BATCH_HEADER_BYTES:
        return None
    header = decode_header(start)
    if check_bounds(header, batch_bytes_max=batch_bytes_max):
        return None
    head = file.read(header.head_bytes, position)
    return head if len(head) == header.head_bytes else None


def _salt_of(head: bytes) -> int:
    """Return the one salt from which the CRC of a batch's head continues."""

    def head_crc(salt: int) -> int:
        return crc32c(head[12:], crc32c(head[:8], crc32c(salt.to_bytes(4, "little"))))

    return _solve(head_crc, decode_header(head).head_crc)


def _solve(affine: Callable[[int], int], wanted: int) -> int:
    """Return the argument of 32 bits for which an affine bijection over bits has the wanted result."""
    offset = affine(0)
    rows: dict[int, tuple[int, int]] = {}
    for bit in range(32):
        column, mask = affine(1 << bit) ^ offset, 1 << bit
        while column and column.bit_length() in rows:
            known, known_mask = rows[column.bit_length()]
            column, mask = column ^ known, mask ^ known_mask
        rows[column.bit_length()] = column, mask
    rest, argument = wanted ^ offset, 0
    while rest:
        column, mask = rows[rest.bit_length()]
        rest, argument = rest ^ column, argument ^ mask
    return argument


def _walk(file: File, header: SegmentHeader, batch_bytes_max: int) -> BatchWalk:
    return BatchWalk(
        file,
        header.file_id,
        salt_crc=header.salt_crc,
        position=SEGMENT_HEADER_BYTES,
        end=file.size(),
        batch_bytes_max=batch_bytes_max,
    )
