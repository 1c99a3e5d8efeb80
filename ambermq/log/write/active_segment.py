"""The segment to which the log writes, and those that it has left and that are not durable yet."""

from typing import Final, NamedTuple

from ambermq.log.format.segment import Segment, SegmentHeader
from ambermq.log.format.time_range import TIME_MAX_US, TimeRange
from ambermq.log.storage.interface import File

__all__ = ["DROP_BYTES", "ActiveSegment", "UnsealedSegment"]

DROP_BYTES: Final = 1024 * 1024
"""The pages that leave the page cache in one call have at least this size."""
_PAGE_BYTES: Final = 4096


class ActiveSegment:
    """The segment to which the log writes."""

    __slots__ = (
        *("allocated_bytes", "dropped_position", "file", "header", "old_us", "position", "salt_crc", "size"),
        *("time_max_us", "time_min_us"),
    )

    def __init__(
        self,
        file: File,
        header: SegmentHeader,
        *,
        position: int,
        size: int,
        allocated_bytes: int,
        times: TimeRange | None = None,
    ) -> None:
        """Continue at `position`, which is 0 if `header` is not written yet. The segment is full at `size` bytes.

        `times` are those of the records before `position`.
        """
        self.time_min_us, self.time_max_us = times or (TIME_MAX_US, -TIME_MAX_US)
        self.allocated_bytes = allocated_bytes
        self.old_us = 0
        """The time at which its age requires a roll; 0 until this process writes a record to it."""
        self.dropped_position = 0
        """The end of the bytes that were dropped from the page cache."""
        self.file = file
        self.header = header
        self.salt_crc = header.salt_crc
        self.position = position
        self.size = size

    def widen(self, low_us: int, high_us: int) -> None:
        """Note the times of records that are written to it."""
        self.time_min_us = min(self.time_min_us, low_us)
        self.time_max_us = max(self.time_max_us, high_us)

    def drop_cached_pages(self, end: int) -> int:
        """Drop the pages before `end` from the page cache if they are 1 MiB or more; return the bytes left to drop.

        The kernel then reuses these pages for the next writes while they are warm: 10 us for 64 KiB. It takes 26 us if
        pages are reused after a whole segment, and 220 us if the machine has returned the pages to its host.
        """
        length = (end & -_PAGE_BYTES) - self.dropped_position
        if length < DROP_BYTES:
            return length
        self.file.drop_cache(self.dropped_position, length)
        self.dropped_position += length
        return 0

    @property
    def times(self) -> TimeRange | None:
        """The times of its records; None if it has none."""
        low_us, high_us = self.time_min_us, self.time_max_us
        return TimeRange(low_us, high_us) if low_us <= high_us else None


class UnsealedSegment(NamedTuple):
    """A segment that the log has rolled away from, and that is not yet durable."""

    segment: Segment
    file: File
    written_bytes: int
    times: TimeRange | None
