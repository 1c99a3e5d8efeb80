"""Copy batches into another segment, byte for byte except the head CRC, which begins with the segment's salt.

The body CRC is copied and never computed again, so that damaged bodies stay detectable.
"""

from ambermq.log.buffer import Buffer
from ambermq.log.format.checksum import crc32c
from ambermq.log.segments.batch_walk import BatchWalk
from ambermq.log.storage.interface import File

__all__ = ["copy_batch", "replace_salt"]

_HEAD_CRC_AT = 8
_HEAD_CRC_END = 12


def replace_salt(head: Buffer, salt_crc: int) -> bytes:
    """Return a batch's header, records and metas with the head CRC for a segment whose salt has this CRC."""
    view = memoryview(head)
    first, rest = view[:_HEAD_CRC_AT], view[_HEAD_CRC_END:]
    return b"".join((first, crc32c(rest, crc32c(first, salt_crc)).to_bytes(4, "little"), rest))


def copy_batch(walk: BatchWalk, target: File, *, position: int, salt_crc: int) -> int:
    """Write the current batch of `walk` at `position` of `target`; return its end there.

    Bodies that are missing because their file ends are written as zeros.
    """
    assert walk.header is not None
    head, bodies = walk.head(), walk.bodies()
    target.write([replace_salt(head, salt_crc), bodies.ljust(walk.header.length - len(head), b"\0")], position)
    return position + walk.header.length
