"""Some batches of a segment, checked by both implementations of CRC-32C; checksum_pair.py says why and how many."""

from ambermq.log.buffer import Buffer
from ambermq.log.errors import DamageError
from ambermq.log.format.batch import check, check_bodies
from ambermq.log.format.checksum_pair import SAMPLE_INTERVAL, crc32c_by_both
from ambermq.log.segments.batch_walk import BatchWalk

__all__ = ["check_by_both"]


def check_by_both(walk: BatchWalk, stored: Buffer, path: str, *, number: int) -> None:
    """Check the batch that `walk` stands on, if its number in the segment, from 0 on, says so.

    `stored` is what `walk.bodies` returns. Raises DamageError, and ChecksumError if the implementations disagree.
    """
    header = walk.header
    if number % SAMPLE_INTERVAL or header is None:
        return
    head = walk.head()
    mismatch = check(walk.salt_crc, head, batch_bytes_max=walk.batch_bytes_max, checksum=crc32c_by_both)
    mismatch = mismatch or check_bodies(header, stored, checksum=crc32c_by_both)
    if mismatch is not None:
        raise DamageError(path, walk.position, mismatch.expected, mismatch.found)
