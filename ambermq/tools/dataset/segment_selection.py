"""The segments that may hold events of a selection. The others are not opened.

Rule 1. Offsets and times of a segment are both ranges. The manifest has them, so nothing is read for the answer.
Rule 2. Segments of version 0.1.0 have no times in the manifest. Times never fell along such a log: a segment ends
before the first time of the next one, and the heads of both are read. A newer segment behind it gives no such bound.
Rule 3. Segments below the horizon have no times if a compaction wrote them. They are always read.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise

from ambermq.log.format.record import RECORD
from ambermq.log.format.time_range import TIME_MAX_US, TimeRange, range_of_records
from ambermq.log.segments.batch_walk import BatchWalk
from ambermq.tools.dataset.arrow_table import EVERYTHING, Selection
from ambermq.tools.dataset.log_segments import HistoryLog, HistorySegment, first_time_us, open_segment

__all__ = ["offset_from", "possible_segments"]


def possible_segments(segments: Sequence[HistorySegment], selection: Selection) -> Iterator[HistorySegment]:
    """Yield the segments that may hold events of a selection; `segments` are neighbours, in order.

    Raises ToolError if a segment of version 0.1.0 was deleted.
    """
    has_times = (selection.begin_us, selection.end_us) != (EVERYTHING.begin_us, EVERYTHING.end_us)
    for segment, following in pairwise((*segments, None)):
        assert segment is not None
        if not _has_offsets(segment, selection):
            continue
        times = _times_of(segment, following) if has_times else None
        if times is None or (times.max_us >= selection.begin_us and times.min_us < selection.end_us):
            yield segment


def offset_from(log: HistoryLog, time_us: int, *, first: int = 0) -> int:
    """Return the first offset from `first` on whose record's time is at or after `time_us`; else the end of the log.

    Raises ToolError if a segment was deleted.
    """
    if time_us == EVERYTHING.begin_us:
        return first
    for segment in possible_segments(log.segments, Selection(first=first, begin_us=time_us)):
        part = open_segment(segment)
        try:
            walk = part.walk()
            found = next((offset for _ in walk for offset in _offsets_from(walk, time_us) if offset >= first), log.end)
        finally:
            part.file.close()
        if found < log.end:
            return found
    return log.end


def _offsets_from(walk: BatchWalk, time_us: int) -> Iterator[int]:
    """Yield the offsets of the current batch's records whose time is at or after `time_us`."""
    header, records = walk.header, walk.parts()[0]
    assert header is not None
    base_us = header.base_timestamp_us
    if header.count and range_of_records(base_us, records).max_us >= time_us:
        for delta, _, _, _, _, _, time_delta, *_ in RECORD.iter_unpack(records):
            if base_us + time_delta >= time_us:
                yield header.base_offset + delta


def _has_offsets(segment: HistorySegment, selection: Selection) -> bool:
    first, end = max(selection.first, segment.first), min(selection.end, segment.end)
    return segment.next_offset > first and segment.base_offset < end


def _times_of(segment: HistorySegment, following: HistorySegment | None) -> TimeRange | None:
    """Return the times of a segment, None if they are unknown."""
    if segment.times is not None or segment.is_compacted:
        return segment.times
    is_bounded = following is not None and following.times is None
    return TimeRange(first_time_us(segment), first_time_us(following) if following and is_bounded else TIME_MAX_US)
