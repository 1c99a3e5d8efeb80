"""The selection of the kept records of one batch.

Rule 1. Columns are arrays of the whole batch, and neighbouring records are one run [first, end). Work is done once a
run, because a single record costs a microsecond for every column.
Rule 2. The module is pure: bytes in, bytes out. It checks only that the offsets exist.
"""

import sys
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import accumulate

from ambermq.log.buffer import Buffer
from ambermq.log.format.record import RECORD

__all__ = ["Columns", "RecordSelection", "rebase", "runs_of"]

_NARROW = RECORD.size // 4
_WIDE = RECORD.size // 8
_TIME_AT = 4


class Columns:
    """The columns of a batch: the offsets of its records, and the starts of their metas and bodies."""

    __slots__ = ("_deltas", "_records", "body_starts", "meta_starts")

    def __init__(self, records: bytes) -> None:
        """Read the columns of `records`, count x 48 bytes."""
        narrow = _unpack("I", records)
        self._records = records
        self._deltas = narrow[0::_NARROW]
        self.body_starts = list(accumulate(narrow[1::_NARROW], initial=0))
        """The start of each record's body in the bodies, and the end of the last one."""
        self.meta_starts = list(accumulate(narrow[2::_NARROW], initial=0))
        """The start of each record's meta in the meta, and the end of the last one."""

    def find(self, deltas: Sequence[int]) -> tuple[list[int], list[int]]:
        """Return the indexes of the records at rising `deltas`, and the deltas that no record has."""
        deltas_present = self._deltas
        count, first = len(deltas_present), deltas_present[0] if deltas_present else 0
        if count and deltas_present[-1] - first == count - 1:
            found = [delta - first for delta in deltas]
            if not found or (found[0] >= 0 and found[-1] < count):
                return found, []
        indexes, missing = [], []
        for delta in deltas:
            index = bisect_left(deltas_present, delta)
            if index < count and deltas_present[index] == delta:
                indexes.append(index)
            else:
                missing.append(delta)
        return indexes, missing

    def size_of(self, runs: Iterable[tuple[int, int]]) -> int:
        """Return the size in bytes of the records, metas and bodies of runs."""
        bodies, metas = self.body_starts, self.meta_starts
        return sum(RECORD.size * (b - a) + bodies[b] - bodies[a] + metas[b] - metas[a] for a, b in runs)

    def cut(self, indexes: Sequence[int], meta: bytes, bodies: memoryview) -> "RecordSelection":
        """Return the records at rising `indexes`, with their parts of the batch's meta and bodies."""
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
    """Records selected from one batch, joined, with their deltas in that batch."""

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
        """Each offset minus the batch's base offset."""
        self._records = records
        self._meta = meta
        self._bodies = bodies
        self._body_starts = body_starts
        self._meta_starts = meta_starts
        self.ends = [
            RECORD.size * index + body + meta
            for index, (body, meta) in enumerate(zip(body_starts, meta_starts, strict=True))
        ]
        """For each record the bytes of all before it, metas and bodies included; at the end the bytes of all."""

    def __len__(self) -> int:
        return len(self.deltas)

    def time_delta(self, index: int) -> int:
        """Return a record's time minus the batch's base timestamp, in microseconds."""
        return int(RECORD.unpack_from(self._records, RECORD.size * index)[6])

    def records(self, first: int, end: int) -> bytes:
        """Return the columns of the records [first, end), unchanged."""
        return self._records[RECORD.size * first : RECORD.size * end]

    def meta(self, first: int, end: int) -> bytes:
        """Return the metas of the records [first, end)."""
        return self._meta[self._meta_starts[first] : self._meta_starts[end]]

    def bodies(self, first: int, end: int) -> Buffer:
        """Return the bodies of the records [first, end)."""
        return self._bodies[self._body_starts[first] : self._body_starts[end]]


def runs_of(indexes: Sequence[int]) -> list[tuple[int, int]]:
    """Return rising indexes as runs [first, end) of consecutive ones."""
    if not indexes:
        return []
    if indexes[-1] - indexes[0] == len(indexes) - 1:
        return [(indexes[0], indexes[-1] + 1)]
    runs = []
    first = previous = indexes[0]
    for index in indexes[1:]:
        if index != previous + 1:
            runs.append((first, previous + 1))
            first = index
        previous = index
    runs.append((first, previous + 1))
    return runs


def rebase(records: bytes, *, offset_shift: int, time_shift_us: int) -> bytes:
    """Return the records with their offset deltas and time deltas shifted."""
    if offset_shift:
        narrow = _unpack("I", records)
        narrow[0::_NARROW] = array("I", [delta + offset_shift for delta in narrow[0::_NARROW]])
        records = _pack(narrow)
    if time_shift_us:
        wide = _unpack("q", records)
        wide[_TIME_AT::_WIDE] = array("q", [delta + time_shift_us for delta in wide[_TIME_AT::_WIDE]])
        records = _pack(wide)
    return records


def _unpack(kind: str, content: bytes) -> "array[int]":
    """Return little-endian numbers as an array in the machine's byte order."""
    numbers = array(kind)
    numbers.frombytes(content)
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers


def _pack(numbers: "array[int]") -> bytes:
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers.tobytes()
