"""The earliest and the latest time of some records.

Rule 1. Times may fall along a log, because clocks are set back. So a reader that looks for a time compares both bounds
of a segment, and never the time of its first record alone.
Rule 2. A range may be wider than the records need. It is never narrower.
"""

from typing import NamedTuple

from ambermq.log.buffer import Buffer

__all__ = ["TIME_MAX_US", "TimeRange", "range_of_records", "union"]

TIME_MAX_US = 1 << 62
"""Later than every time of a record; the negative is earlier than every one."""

_WORDS_A_RECORD = 6
_DELTA_WORD = 4
"""The timestamp delta is the fifth word of eight bytes in a record (record.py)."""


class TimeRange(NamedTuple):
    """Two times in microseconds UTC; both are included."""

    min_us: int
    max_us: int


def range_of_records(base_us: int, records: Buffer) -> TimeRange:
    """Return the range of a batch's records, 48 bytes each, whose deltas count from `base_us`."""
    deltas = memoryview(bytes(records)).cast("q")[_DELTA_WORD::_WORDS_A_RECORD]
    # Nearly every batch has one time. Then one pass is enough.
    if not any(deltas):
        return TimeRange(base_us, base_us)
    return TimeRange(base_us + min(deltas), base_us + max(deltas))


def union(*ranges: TimeRange | None) -> TimeRange | None:
    """Return the range of everything in `ranges`; None is a range of nothing."""
    known = [one for one in ranges if one is not None]
    if not known:
        return None
    return TimeRange(min(one.min_us for one in known), max(one.max_us for one in known))
