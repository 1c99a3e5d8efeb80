"""Finding single batches of a log that is open for reading, without walking all of it.

Rule 1. A sealed segment is entered by its index where that fits, else by one walk over its heads. What is not sealed
was surveyed when the reader opened, so where its batches lie is known.
Rule 2. At most `_SEGMENTS_MAX` sealed segments are open; the one not used for longest is closed first.
Rule 3. Times never fall along the log but for batches without records, which therefore decide nothing.
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
from ambermq.log.manifest.manifest import Sealed
from ambermq.log.segments.batch_walk import BatchWalk
from ambermq.log.segments.segment_reader import SegmentReader

__all__ = ["BatchLookup"]

_SEGMENTS_MAX: Final = 8
_TIME_MAX: Final = 1 << 62


class _Opened:
    """An open segment, and what is known of where its batches lie."""

    def __init__(self, part: SegmentReader, sealed: Sealed | None, directory: str) -> None:
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

    def near(self, time_us: int) -> int | None:
        """Return the position of a batch at or before a time, None where nothing better than the first is known."""
        base_offset = None if self.index is None else self.index.at(time_us)
        return None if base_offset is None else self.positions.locate(base_offset)

    def close(self) -> None:
        """Close what only the look-up has opened."""
        index = self.__dict__.get("index")
        if index is not None:
            index.close()
        if self._sealed is not None:
            self.part.file.close()


class BatchLookup:
    """Look-ups in the segments of one reader."""

    def __init__(
        self,
        directory: str,
        sealed: Sequence[Sealed],
        parts: Sequence[SegmentReader],
        open_sealed: Callable[[Sealed], SegmentReader],
    ) -> None:
        """Look into `sealed` segments, and into `parts`, which are open and stay so."""
        self._directory = directory
        self._open_sealed = open_sealed
        self._segments: list[Sealed | SegmentReader] = [
            *sealed,
            *(part for part in parts if part.end > SEGMENT_HEADER_BYTES),
        ]
        self._bases = [_base_of(segment) for segment in self._segments]
        self._opened: OrderedDict[int, _Opened] = OrderedDict()

    def find(self, offset: int) -> tuple[SegmentReader, BatchWalk] | None:
        """Return the segment and a walk that stands on the batch which answers for `offset`, None where none does.

        The segment is open until other look-ups have opened many more. Raises DamageError.
        """
        index = bisect_right(self._bases, offset) - 1
        if index < 0:
            return None
        opened = self._open(index)
        part, positions = opened.part, opened.positions
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
        """Return where to begin in the segment that answers for `offset`, to meet its batch and few before it."""
        index = bisect_right(self._bases, offset) - 1
        position = self._open(index).positions.locate(offset) if index >= 0 else None
        return position or SEGMENT_HEADER_BYTES

    def offset_at(self, time_us: int, *, end: int) -> int | None:
        """Return the greatest offset below `end` whose record's time is at or before `time_us`; None: there is none."""
        index = bisect_right(range(len(self._segments)), time_us, key=self._first_time)
        return self._last_of(index, lambda opened: opened.near(time_us), time_us, end)

    def floor(self, offset: int) -> int | None:
        """Return the greatest offset at or below `offset` at which there is a record, None where there is none."""
        index = bisect_right(self._bases, offset)
        return self._last_of(index, lambda opened: opened.positions.locate(offset), _TIME_MAX, offset + 1)

    def _last_of(self, index: int, start_of: Callable[[_Opened], int | None], time_us: int, end: int) -> int | None:
        """Return the last offset at or before a time and below `end`, in the first `index` segments.

        `start_of` tells a position in the last of them from which it is most likely found.
        """
        for opened in map(self._open, range(index - 1, -1, -1)):
            start = start_of(opened) or SEGMENT_HEADER_BYTES
            found = _last_until(opened.part, start, time_us, end)
            if found is None and start > SEGMENT_HEADER_BYTES:
                found = _last_until(opened.part, SEGMENT_HEADER_BYTES, time_us, end)
            if found is not None:
                return found
        return None

    def close(self) -> None:
        """Close every segment that a look-up has opened."""
        while self._opened:
            self._opened.popitem()[1].close()

    def _open(self, index: int) -> _Opened:
        opened = self._opened.get(index)
        if opened is None:
            segment = self._segments[index]
            if isinstance(segment, SegmentReader):
                opened = _Opened(segment, None, self._directory)
            else:
                opened = _Opened(self._open_sealed(segment), segment, self._directory)
            self._opened[index] = opened
            if len(self._opened) > _SEGMENTS_MAX:
                self._opened.popitem(last=False)[1].close()
        self._opened.move_to_end(index)
        return opened

    def _first_time(self, index: int) -> int:
        part = self._open(index).part
        walk = part.walk(end=part.end)
        for header in walk:
            return header.base_timestamp_us
        _check_whole(part, walk, part.end)
        return 0


def _base_of(segment: Sealed | SegmentReader) -> int:
    return segment.header.base_offset if isinstance(segment, SegmentReader) else segment.base_offset


def _last_until(part: SegmentReader, position: int, time_us: int, end: int) -> int | None:
    """Return the greatest offset below `end` at or before a time, in the batches from `position` on."""
    walk, last = part.walk(position, end=part.end), None
    for header in walk:
        if header.count:
            if header.base_timestamp_us > time_us or header.base_offset >= end:
                break
            last = walk.position
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
    """Raise DamageError where a walk ended before `end`, up to which batches are known to lie."""
    if walk.position < end:
        expected, found = walk.mismatch or ("a batch", "zeros, as where nothing was ever written")
        raise DamageError(part.path, walk.position, expected, found)
