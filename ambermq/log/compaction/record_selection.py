"""The kept records of one batch, found and cut out a batch at a time.

Rule 1. Columns are arrays of the whole batch, neighbours are one run [first, end): work is done once a run, not once a
record, for a record alone costs a microsecond for every column.
Rule 2. Pure: bytes in, bytes out. Nothing is checked here but that an offset is there.
"""

import sys
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import accumulate

from ambermq.log.buffer import Buffer
from ambermq.log.format.record import RECORD

__all__ = ["Columns", "RecordSelection", "rebased", "runs_of"]

_NARROW = RECORD.size // 4
_WIDE = RECORD.size // 8
_TIME_AT = 4


class Columns:
    """Where the records of a batch lie: their offsets, and where each one's meta and body begins."""

    __slots__ = ("_deltas", "_records", "body_starts", "meta_starts")

    def __init__(self, records: bytes) -> None:
        """Read the columns of `records`, count x 48 bytes."""
        narrow = _unpacked("I", records)
        self._records = records
        self._deltas = narrow[0::_NARROW]
        self.body_starts = list(accumulate(narrow[1::_NARROW], initial=0))
        """Of each record's body in the bodies, and the end of the last."""
        self.meta_starts = list(accumulate(narrow[2::_NARROW], initial=0))
        """Of each record's meta in the meta, and the end of the last."""

    def find(self, deltas: Sequence[int]) -> tuple[list[int], list[int]]:
        """Return the indexes of the records at `deltas`, which rise, and those deltas that no record has."""
        own = self._deltas
        count, first = len(own), own[0] if own else 0
        if count and own[-1] - first == count - 1:
            found = [delta - first for delta in deltas]
            if not found or (found[0] >= 0 and found[-1] < count):
                return found, []
        indexes, missing = [], []
        for delta in deltas:
            index = bisect_left(own, delta)
            if index < count and own[index] == delta:
                indexes.append(index)
            else:
                missing.append(delta)
        return indexes, missing

    def size_of(self, runs: Iterable[tuple[int, int]]) -> int:
        """Return the bytes of the records, metas and bodies of runs of neighbours."""
        bodies, metas = self.body_starts, self.meta_starts
        return sum(RECORD.size * (b - a) + bodies[b] - bodies[a] + metas[b] - metas[a] for a, b in runs)

    def cut(self, indexes: Sequence[int], meta: bytes, bodies: memoryview) -> "RecordSelection":
        """Return the records at `indexes`, which rise, with their share of the batch's meta and bodies."""
        runs, body_starts, meta_starts, records = runs_of(indexes), self.body_starts, self.meta_starts, self._records
        body_lengths = [body_starts[index + 1] - body_starts[index] for index in indexes]
        meta_lengths = [meta_starts[index + 1] - meta_starts[index] for index in indexes] if meta else ()
        return RecordSelection(
            [self._deltas[index] for index in indexes],
            b"".join([records[RECORD.size * first : RECORD.size * end] for first, end in runs]),
            b"".join([meta[meta_starts[first] : meta_starts[end]] for first, end in runs]) if meta else b"",
            b"".join([bodies[body_starts[first] : body_starts[end]] for first, end in runs]),
            list(accumulate(body_lengths, initial=0)),
            list(accumulate(meta_lengths, initial=0)) if meta else [0] * (len(indexes) + 1),
        )


class RecordSelection:
    """Records that were cut out of one batch: back to back, with the deltas that they had there."""

    __slots__ = ("_bodies", "_body_starts", "_meta", "_meta_starts", "_records", "deltas", "ends")

    def __init__(
        self,
        deltas: list[int],
        records: bytes,
        meta: bytes,
        bodies: bytes,
        body_starts: list[int],
        meta_starts: list[int],
    ) -> None:
        self.deltas = deltas
        """Each offset less the batch's base offset."""
        self._records = records
        self._meta = meta
        self._bodies = bodies
        self._body_starts = body_starts
        self._meta_starts = meta_starts
        self.ends = [
            RECORD.size * index + body + meta
            for index, (body, meta) in enumerate(zip(body_starts, meta_starts, strict=True))
        ]
        """Bytes of the records before each, metas and bodies included; of all in the end."""

    def __len__(self) -> int:
        return len(self.deltas)

    def time_delta(self, index: int) -> int:
        """Return a record's time less the batch's base timestamp, in microseconds."""
        return int(RECORD.unpack_from(self._records, RECORD.size * index)[6])

    def records(self, first: int, end: int) -> bytes:
        """Return the records [first, end) as they were."""
        return self._records[RECORD.size * first : RECORD.size * end]

    def meta(self, first: int, end: int) -> bytes:
        """Return the metas of the records [first, end)."""
        return self._meta[self._meta_starts[first] : self._meta_starts[end]]

    def bodies(self, first: int, end: int) -> Buffer:
        """Return the bodies of the records [first, end)."""
        return self._bodies[self._body_starts[first] : self._body_starts[end]]


def runs_of(indexes: Sequence[int]) -> list[tuple[int, int]]:
    """Return rising indexes as runs [first, end) of neighbours."""
    if not indexes:
        return []
    if indexes[-1] - indexes[0] == len(indexes) - 1:
        return [(indexes[0], indexes[-1] + 1)]
    runs = []
    first = before = indexes[0]
    for index in indexes[1:]:
        if index != before + 1:
            runs.append((first, before + 1))
            first = index
        before = index
    runs.append((first, before + 1))
    return runs


def rebased(records: bytes, *, offset_shift: int, time_shift_us: int) -> bytes:
    """Return records whose offset deltas and time deltas are so much larger."""
    if offset_shift:
        narrow = _unpacked("I", records)
        narrow[0::_NARROW] = array("I", [delta + offset_shift for delta in narrow[0::_NARROW]])
        records = _packed(narrow)
    if time_shift_us:
        wide = _unpacked("q", records)
        wide[_TIME_AT::_WIDE] = array("q", [delta + time_shift_us for delta in wide[_TIME_AT::_WIDE]])
        records = _packed(wide)
    return records


def _unpacked(kind: str, content: bytes) -> "array[int]":
    """Return little-endian numbers as this machine counts."""
    numbers = array(kind)
    numbers.frombytes(content)
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers


def _packed(numbers: "array[int]") -> bytes:
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers.tobytes()
