"""The times at which the newest parts of a log were written: so the age of a message needs no read of the disk.

    note(end, time_us)   once a second: everything below `end` was logged by then
    time_of(offset)      the time of the first note above the offset

Rule 1. A time is at most a second late, for the offsets since the start of the broker. The number of notes is bounded:
        when it is reached, every second one of the older half is dropped, so old times are less exact.
Rule 2. An older offset has the time at which its sealed segment begins. Where that is not known, the time is None.
"""

from array import array
from bisect import bisect_right
from collections.abc import Sequence
from typing import Final, final

from ambermq.engine.entries.entry_word import entry_of, unpack_words
from ambermq.engine.model.queue import Queue
from ambermq.log.manifest.manifest import SealedSegment

__all__ = ["OffsetTimes"]

_NOTES_MAX: Final = 8192


@final
class OffsetTimes:
    """The times of the offsets of one log."""

    __slots__ = ("_ends", "_notes_max", "_times")

    def __init__(self, *, notes_max: int = _NOTES_MAX) -> None:
        """Create it with no notes; the first one is of the start."""
        self._ends, self._times = array("Q"), array("q")
        self._notes_max = notes_max

    def note(self, end: int, time_us: int) -> None:
        """Note that everything below `end` was logged by a time."""
        if self._ends and end <= self._ends[-1]:
            return
        self._ends.append(end)
        self._times.append(time_us)
        if len(self._ends) >= self._notes_max:
            # The first note stays: below it the segments have the times.
            half = self._notes_max // 2
            del self._ends[1:half:2]
            del self._times[1:half:2]

    def time_of(self, offset: int, sealed: Sequence[SealedSegment], now_us: int) -> int | None:
        """Return when an offset was logged; `sealed` are the sealed segments in order. None if that is not known."""
        if not self._ends or offset < self._ends[0]:
            return _time_in(sealed, offset)
        at = bisect_right(self._ends, offset)
        return self._times[at] if at < len(self._ends) else now_us

    def oldest_us(self, queue: Queue, sealed: Sequence[SealedSegment], now_us: int) -> int | None:
        """Return when the oldest message that waits on a queue was logged; None without one."""
        heads = unpack_words(b"".join([words.head(1) for words in queue.unscheduled_lists]))
        return self.time_of(entry_of(min(heads)), sealed, now_us) if heads else None


def _time_in(sealed: Sequence[SealedSegment], offset: int) -> int | None:
    at = bisect_right(sealed, offset, key=lambda segment: segment.base_offset) - 1
    if at < 0 or offset >= sealed[at].next_offset or (times := sealed[at].times) is None:
        return None
    return times.min_us
