"""The tables of an index during its build: collected from a walk of the segment, then written to LMDB in key order.

Rule 1. Rows are sorted and appended, which is several times as fast as unsorted inserts.
Rule 2. Every method is a generator that yields about once a millisecond, so that no call holds the interpreter longer.
Rule 3. This module does not know what a touch means. The caller of a build gives the function that reads u64 keys from
a batch, and looks up the same keys later.
"""

from array import array
from collections.abc import Callable, Iterable, Iterator
from struct import Struct
from typing import Any, Final

from ambermq.log.format.batch import Batch
from ambermq.log.format.sparse_positions import SPACING_BYTES
from ambermq.log.segments.batch_walk import BatchWalk

__all__ = ["U32", "U64", "Tables", "TouchesOf", "no_touches"]

TouchesOf = Callable[[Batch], Iterable[tuple[int, int]]]
"""A function that yields the (key, record offset) pairs of a batch, each pair once, with rising offsets."""

U64: Final = Struct("=Q")
U32: Final = Struct("=I")
_DELTA_AND_HASH: Final = Struct("<I8xI32x")
_PUTS_A_STEP: Final = 1024
_RECORDS_A_STEP: Final = 2048
_RECORDS_A_BATCH: Final = 16
"""The cost of reading one batch, in records."""
_DUPLICATE_KEYS: Final = {"integerkey": True, "dupsort": True, "integerdup": True, "dupfixed": True}


def no_touches(_batch: Batch) -> Iterator[tuple[int, int]]:
    """Yield nothing. For a log whose records are never looked up by a key."""
    return iter(())


class Tables:
    """The rows of one segment: collected from its batches, then written to a new LMDB environment."""

    def __init__(self, first_offset: int, touches_of: TouchesOf) -> None:
        """Start empty; `first_offset` is the segment's base offset."""
        self._first_offset = first_offset
        self._touches_of = touches_of
        # Sorting a million hashes in one call would take too long, so they are sorted in 256 small lists.
        self._heaps: list[list[int]] = [[] for _ in range(256)]
        self._touches: dict[int, array[int]] = {}
        self._batches: list[tuple[int, int]] = []
        self._times: dict[int, int] = {}

    def collect(self, walk: BatchWalk) -> Iterator[None]:
        """Add every batch of a walk. Raises ValueError if the walk does not reach its end."""
        next_position = work = time_us = 0
        for header in walk:
            if walk.position >= next_position:
                next_position = walk.position + SPACING_BYTES
                self._batches.append((header.base_offset, walk.position))
                self._times[header.base_timestamp_us] = header.base_offset
            elif header.base_timestamp_us < time_us:
                # The clock was set back here. Between two rows of the table times never fall.
                self._times[header.base_timestamp_us] = header.base_offset
            time_us = header.base_timestamp_us
            if header.count:
                self._add_batch(walk.batch())
            work += _RECORDS_A_BATCH + header.count
            if work >= _RECORDS_A_STEP:
                work = 0
                yield
        if walk.mismatch is not None or walk.position < walk.end:
            raise ValueError(f"the segment is invalid from position {walk.position} on")

    def _add_batch(self, batch: Batch) -> None:
        heaps, distance = self._heaps, batch.header.base_offset - self._first_offset
        for delta, id_hash in _DELTA_AND_HASH.iter_unpack(batch.records):
            if id_hash:
                heaps[id_hash >> 24].append(id_hash << 64 | distance + delta)
        touches = self._touches
        for key, offset in self._touches_of(batch):
            known = touches.get(key)
            if known is None:
                known = touches[key] = array("Q")
            known.append(offset)

    def put(self, environment: Any, transaction: Any) -> Iterator[None]:
        """Write all tables to LMDB."""
        yield from _put_table(environment, transaction, b"batches", dict(self._batches).items())
        yield from _put_table(environment, transaction, b"times", sorted(self._times.items()))
        yield from self._put_ids(transaction.cursor(environment.open_db(b"ids", txn=transaction, **_DUPLICATE_KEYS)))
        if self._touches_of is not no_touches:
            table = environment.open_db(b"touches", txn=transaction, **_DUPLICATE_KEYS)
            yield from self._put_touches(transaction.cursor(table))

    def _put_ids(self, cursor: Any) -> Iterator[None]:
        first_offset = self._first_offset
        for heap in self._heaps:
            heap.sort()
            for start in range(0, len(heap), _PUTS_A_STEP):
                part = heap[start : start + _PUTS_A_STEP]
                rows = [(U32.pack(one >> 64), U64.pack(first_offset + (one & (1 << 64) - 1))) for one in part]
                cursor.putmulti(rows, append=True)
                yield

    def _put_touches(self, cursor: Any) -> Iterator[None]:
        rows: list[tuple[bytes, bytes]] = []
        for key in sorted(self._touches):
            packed, offsets = U64.pack(key), self._touches[key]
            for start in range(0, len(offsets), _PUTS_A_STEP):
                rows += [(packed, U64.pack(offset)) for offset in offsets[start : start + _PUTS_A_STEP]]
                if len(rows) >= _PUTS_A_STEP:
                    cursor.putmulti(rows, append=True)
                    rows = []
                    yield
        cursor.putmulti(rows, append=True)


def _put_table(environment: Any, transaction: Any, name: bytes, rows: Iterable[tuple[int, int]]) -> Iterator[None]:
    cursor = transaction.cursor(environment.open_db(name, txn=transaction, integerkey=True))
    packed = [(U64.pack(key), U64.pack(value)) for key, value in rows]
    for start in range(0, len(packed), _PUTS_A_STEP):
        cursor.putmulti(packed[start : start + _PUTS_A_STEP], append=True)
        yield
