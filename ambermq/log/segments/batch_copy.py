"""Copying batches into another segment: byte for byte, but for the head CRC, which begins with the segment's salt.

The body CRC is copied too, never computed anew: bodies that were wrong stay known to be wrong.
"""

from ambermq.log.buffer import Buffer
from ambermq.log.format.checksum import crc32c
from ambermq.log.segments.batch_walk import BatchWalk
from ambermq.log.storage.interface import File

__all__ = ["copy_batch", "resalted"]

_HEAD_CRC_AT = 8
_HEAD_CRC_END = 12


def resalted(head: Buffer, salt_crc: int) -> bytes:
    """Return header, records and metas of a batch as they are in a segment whose salt has this CRC."""
    view = memoryview(head)
    first, rest = view[:_HEAD_CRC_AT], view[_HEAD_CRC_END:]
    return b"".join((first, crc32c(rest, crc32c(first, salt_crc)).to_bytes(4, "little"), rest))


def copy_batch(walk: BatchWalk, target: File, *, position: int, salt_crc: int) -> int:
    """Write the batch that `walk` stands on at `position` of `target`; return where it ends there.

    Bodies that lie beyond the end of their file are written as zeros.
    """
    assert walk.header is not None
    head, bodies = walk.head(), walk.bodies()
    target.write([resalted(head, salt_crc), bodies.ljust(walk.header.length - len(head), b"\0")], position)
    return position + walk.header.length
