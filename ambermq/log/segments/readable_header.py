"""The header of a sealed segment, even if one byte of it is wrong.

The batches of a segment need only the salt of its header, and their head CRCs prove a salt. So a broker that serves
goes on reading a segment whose header is damaged, and reports the damage. A start and a verification refuse it.

Rule 1. A salt comes from the header's bytes, from the segment's index, or from a header whose one wrong byte is in the
salt. It counts only if the head CRC of the first batch continues from it.
"""

from collections.abc import Iterator
from typing import Final

from ambermq.log.errors import DamageError, ForeignError, LogError
from ambermq.log.format.checksum import crc32c
from ambermq.log.format.segment import COMPRESSIBLE_VERSION, SEGMENT_HEADER_BYTES, SegmentHeader
from ambermq.log.segments.batch_walk import BatchWalk
from ambermq.log.storage.interface import File

__all__ = ["readable_header"]

_SALT: Final = slice(12, 16)
_LOG_ID: Final = slice(16, 32)
_FILE_ID: Final = slice(32, 40)
_CRC: Final = slice(52, 56)


def readable_header(file: File, path: str, *, batch_bytes_max: int, indexed_salt: int | None = None) -> SegmentHeader:
    """Return the header of a segment, or one with the right salt if the header is damaged.

    `indexed_salt` is the salt in the segment's index, if that is known. Raises DamageError or ForeignError if no salt
    fits.
    """
    head = file.read(SEGMENT_HEADER_BYTES, 0)
    fault: LogError = DamageError(path, 0, "a segment header", "zeros")
    try:
        header = SegmentHeader.decode(head, path)
    except (DamageError, ForeignError) as error:
        header, fault = None, error
    if header is not None:
        return header
    for salt in _possible_salts(head, indexed_salt):
        found = _header_with(head, salt)
        if _has_first_batch(file, found, batch_bytes_max):
            return found
    raise fault


def _possible_salts(head: bytes, indexed_salt: int | None) -> Iterator[int]:
    if len(head) < SEGMENT_HEADER_BYTES:
        return
    yield int.from_bytes(head[_SALT], "little")
    if indexed_salt is not None:
        yield indexed_salt
    crc = int.from_bytes(head[_CRC], "little")
    fields = bytearray(head[: _CRC.start])
    for position in range(_SALT.start, _SALT.stop):
        for value in range(256):
            fields[position] = value
            if crc32c(fields) == crc:
                yield int.from_bytes(fields[_SALT], "little")
        fields[position] = head[position]


def _header_with(head: bytes, salt: int) -> SegmentHeader:
    file_id = int.from_bytes(head[_FILE_ID], "little")
    # The version is unknown, so the batches may be compressed.
    return SegmentHeader(salt, head[_LOG_ID], file_id, base_offset=0, epoch=0, version=COMPRESSIBLE_VERSION)


def _has_first_batch(file: File, header: SegmentHeader, batch_bytes_max: int) -> bool:
    walk = BatchWalk(
        file,
        header.file_id,
        salt_crc=header.salt_crc,
        position=SEGMENT_HEADER_BYTES,
        end=file.size(),
        batch_bytes_max=batch_bytes_max,
    )
    return next(iter(walk), None) is not None
