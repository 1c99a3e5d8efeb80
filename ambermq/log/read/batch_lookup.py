"""Lookups of single batches in a log that is open for reading, without a walk over all of it.

Rule 1. A lookup in a sealed segment uses its index if that fits, else one walk over its heads. The survey at the
opening of the reader has the positions in the other segments.
Rule 2. At most `_SEGMENTS_MAX` sealed segments are open. The least recently used one is closed first.
Rule 3. Times may fall along the log where a clock was set back, but not within a batch. A lookup by time ends at the
last offset whose time is at or before it. So it begins at the end of the log, and leaves out segments that are too
late. Segments without known times are those of version 0.1.0, whose times never fall. Batches without records are
ignored.
"""

from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Final

from ambermq.log.errors import DamageError
from ambermq.log.format.segment import SEGMENT_HEADER_BYTES
from ambermq.log.format.sparse_positions import SparsePositions
from ambermq.log.index.segment_index import Index, load_positions, path_of_index
from ambermq.log.manifest.manifest import SealedSegment
from ambermq.log.segments.batch_walk import BatchWalk
from ambermq.log.segments.segment_reader import SegmentReader

__all__ = ["BatchLookup"]

_SEGMENTS_MAX: Final = 8
_TIME_MAX: Final = 1 << 62


class _OpenSegment:
    """An open segment and the positions of its batches."""

    def __init__(self, part: SegmentReader, sealed: SealedSegment | None, directory: str) -> None:
        self.part = part
        self._sealed = sealed
        self._directory = directory

    @cached_property
    def positions(self) -> SparsePositions:
        part = self.part
        if self._sealed is None:
            return part.positions
        segment = self._sealed.at(self._directory)
        return load_positions(part.file, part.path, segment, batch_bytes_max=part.batch_bytes_max)

    @cached_property
    def index(self) -> Index | None:
        if self._sealed is None:
            return None
        segment = self._sealed.at(self._directory)
        return Index.open(path_of_index(segment), segment, self.part.header)

    def base_near(self, time_us: int) -> int | None:
        """Return the base offset of a batch at or before a time, or None if the index has none.

        Up to the last such batch times do not fall after it.
        """
        return None if self.index is None else self.index.at(time_us)

    def position_near(self, time_us: int) -> int | None:
        """Return the position of a batch at or before a time, or None if only the segment's start is known."""
        base_offset = self.base_near(time_us)
        return None if base_offset is None else self.positions.locate(base_offset)

    def close(self) -> None:
        """Close the files that the lookup has opened itself."""
        index = self.__dict__.get("index")
        if index is not None:
            index.close()
        if self._sealed is not None:
            self.part.file.close()


class BatchLookup:
    """Lookups in the segments of one reader."""

    def __init__(
        self,
        directory: str,
        sealed: Sequence[SealedSegment],
        parts: Sequence[SegmentReader],
        open_sealed: Callable[[SealedSegment], SegmentReader],
    ) -> None:
        """Use `sealed` segments, and `parts`, which are open and stay open."""
        self._directory = directory
        self._open_sealed = open_sealed
        self._segments: list[SealedSegment | SegmentReader] = [
            *sealed,
            *(part for part in parts if part.end > SEGMENT_HEADER_BYTES),
        ]
        self._bases = [_base_of(segment) for segment in self._segments]
        self._open_segments: OrderedDict[int, _OpenSegment] = OrderedDict()

    def find(self, offset: int) -> tuple[SegmentReader, BatchWalk] | None:
        """Return the segment and a walk at the batch whose range has `offset`, or None if there is none.

        The segment stays open until later lookups have opened `_SEGMENTS_MAX` others. Raises DamageError.
        """
        index = bisect_right(self._bases, offset) - 1
        if index < 0:
            return None
        open_segment = self._open(index)
        part, positions = open_segment.part, open_segment.positions
        end = min(part.end, positions.locate_next(offset) or part.end)
        walk = part.walk(positions.locate(offset) or SEGMENT_HEADER_BYTES, end=end)
        for header in walk:
            if header.base_offset > offset:
                return None
            if walk.next_offset() > offset:
                return part, walk
        _check_whole(part, walk, end)
        return None

    def position(self, offset: int) -> int:
        """Return the position from which a walk of the segment reaches the batch of `offset` after few others."""
        index = bisect_right(self._bases, offset) - 1
        position = self._open(index).positions.locate(offset) if index >= 0 else None
        return position or SEGMENT_HEADER_BYTES

    def offset_at(self, time_us: int, *, end: int) -> int | None:
        """Return the greatest offset below `end` whose record's time is at or before `time_us`, or None."""
        for index in range(len(self._segments) - 1, -1, -1):
            times = self._segments[index].times
            if times is None and not any(one.times for one in self._segments[:index]):
                earlier = bisect_right(range(index + 1), time_us, key=self._first_time)
                return self._last_of(earlier, lambda one: one.position_near(time_us), time_us, end)
            if (self._first_time(index) if times is None else times.min_us) <= time_us:
                found = self._last_in(index, time_us, end)
                if found is not None:
                    return found
        return None

    def _last_in(self, index: int, time_us: int, end: int) -> int | None:
        """Return the last offset of a segment at or before a time and below `end`, although times may fall."""
        open_segment = self._open(index)
        base_offset = open_segment.base_near(time_us)
        if base_offset is not None:
            start = open_segment.positions.locate(base_offset) or SEGMENT_HEADER_BYTES
            found = _last_until(open_segment.part, start, time_us, end, falls_until=base_offset)
            if found is not None:
                return found
        return _last_until(open_segment.part, SEGMENT_HEADER_BYTES, time_us, end, falls_until=_TIME_MAX)

    def floor(self, offset: int) -> int | None:
        """Return the greatest offset of a record at or below `offset`, or None if there is none."""
        index = bisect_right(self._bases, offset)
        return self._last_of(index, lambda open_segment: open_segment.positions.locate(offset), _TIME_MAX, offset + 1)

    def _last_of(
        self, index: int, start_of: Callable[[_OpenSegment], int | None], time_us: int, end: int
    ) -> int | None:
        """Return the last offset at or before a time and below `end`, in the first `index` segments.

        `start_of` returns the position in the last of them from which a walk most likely finds it.
        """
        for open_segment in map(self._open, range(index - 1, -1, -1)):
            start = start_of(open_segment) or SEGMENT_HEADER_BYTES
            found = _last_until(open_segment.part, start, time_us, end)
            if found is None and start > SEGMENT_HEADER_BYTES:
                found = _last_until(open_segment.part, SEGMENT_HEADER_BYTES, time_us, end)
            if found is not None:
                return found
        return None

    def close(self) -> None:
        """Close every segment that a lookup has opened."""
        while self._open_segments:
            self._open_segments.popitem()[1].close()

    def _open(self, index: int) -> _OpenSegment:
        open_segment = self._open_segments.get(index)
        if open_segment is None:
            segment = self._segments[index]
            if isinstance(segment, SegmentReader):
                open_segment = _OpenSegment(segment, None, self._directory)
            else:
                open_segment = _OpenSegment(self._open_sealed(segment), segment, self._directory)
            self._open_segments[index] = open_segment
            if len(self._open_segments) > _SEGMENTS_MAX:
                self._open_segments.popitem(last=False)[1].close()
        self._open_segments.move_to_end(index)
        return open_segment

    def _first_time(self, index: int) -> int:
        part = self._open(index).part
        walk = part.walk(end=part.end)
        for header in walk:
            return header.base_timestamp_us
        _check_whole(part, walk, part.end)
        return 0


def _base_of(segment: SealedSegment | SegmentReader) -> int:
    return segment.header.base_offset if isinstance(segment, SegmentReader) else segment.base_offset


def _last_until(part: SegmentReader, position: int, time_us: int, end: int, *, falls_until: int = 0) -> int | None:
    """Return the greatest offset below `end` at or before a time, in the batches from `position` on.

    Times may fall up to the offset `falls_until`. Beyond it the walk ends at the first later batch.
    """
    walk, last = part.walk(position, end=part.end), None
    for header in walk:
        if header.count:
            is_late = header.base_timestamp_us > time_us
            if header.base_offset >= end or (is_late and header.base_offset >= falls_until):
                break
            last = last if is_late else walk.position
    else:
        _check_whole(part, walk, part.end)
    if last is None:
        return None
    walk = part.walk(last, end=part.end)
    next(iter(walk))
    offsets = [
        record.offset for record in walk.batch().record_list() if record.timestamp_us <= time_us and record.offset < end
    ]
    return max(offsets, default=None)


def _check_whole(part: SegmentReader, walk: BatchWalk, end: int) -> None:
    """Raise DamageError if a walk ended before `end`, the known end of the batches."""
    if walk.position < end:
        expected, found = walk.mismatch or ("a batch", "zeros, as in unwritten space")
        raise DamageError(part.path, walk.position, expected, found)
