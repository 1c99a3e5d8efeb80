"""A persistent table of rows of fixed length, which are found by their first bytes: key and value are `bytes`.

    buckets   number -> row row row …      about 32 rows each, in any order; no empty bucket
    row       key | value

Rule 1. A row is never an object of its own, so a table with a million rows of 24 bytes takes about 30 bytes a row. A
        `PersistentMap` takes three times as much.
Rule 2. The number of buckets follows the number of rows by linear hashing: when it grows by one, one bucket is divided.
        So no change takes longer than a few microseconds, however large the table is.
Rule 3. The hash is that of the number that the first eight bytes of a key hold. It is the same in each process.
Rule 4. Two tables are equal if their rows are, whatever their buckets are.
"""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final, final

from msgspec import Struct

from ambermq.snapshot.persistent_map import PersistentMap

if TYPE_CHECKING:
    from immutables import MapMutation

__all__ = ["PackedTable", "TableDraft", "new_table"]

_ROWS_A_BUCKET: Final = 32
_FACTOR: Final = 0x9E37_79B9_7F4A_7C15
"""An odd number near 2^64 divided by the golden ratio: neighbouring keys get distant hashes."""
_MASK: Final = (1 << 64) - 1
_SHIFT: Final = 24
"""The lowest bits of a product depend on the lowest bits of the key alone."""


@final
class PackedTable(Struct, frozen=True, eq=False):
    """An immutable table."""

    key_bytes: int
    row_bytes: int
    buckets: "PersistentMap[int, bytes]"
    size: int
    """The number of buckets, with the empty ones."""
    count: int
    """The number of rows."""

    def __len__(self) -> int:
        return self.count

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PackedTable):
            return NotImplemented
        return self.count == other.count and dict(self.items()) == dict(other.items())

    def __ne__(self, other: object) -> bool:
        # The base class compares by identity.
        return not self == other

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"PackedTable(count={self.count})"

    def get(self, key: bytes) -> bytes | None:
        """Return the value of a key, None if the table does not have it."""
        rows = self.buckets.get(_bucket_of(key, self.size))
        if rows is None:
            return None
        start = _find(rows, key, self.row_bytes)
        return None if start < 0 else rows[start + self.key_bytes : start + self.row_bytes]

    def items(self) -> Iterator[tuple[bytes, bytes]]:
        """Yield keys and values in any order."""
        middle, length = self.key_bytes, self.row_bytes
        for rows in self.buckets.values():
            for start in range(0, len(rows), length):
                yield rows[start : start + middle], rows[start + middle : start + length]

    def mutate(self) -> "TableDraft":
        """Return a draft of another table, for several changes."""
        return TableDraft(self)

    def filled(self, rows: Iterable[bytes], count: int) -> "PackedTable":
        """Return a table of the same kind with `count` rows and no others; no two of them have one key."""
        size = max(1, -(-count // _ROWS_A_BUCKET))
        buckets: dict[int, bytearray] = {}
        for row in rows:
            number = _bucket_of(row, size)
            known = buckets.get(number)
            if known is None:
                buckets[number] = bytearray(row)
            else:
                known += row
        draft = PersistentMap[int, bytes]().mutate()
        for number, some in buckets.items():
            draft[number] = bytes(some)
        return PackedTable(self.key_bytes, self.row_bytes, draft.finish(), size, count)


@final
class TableDraft:
    """Changes of a table, which copy a part of it once."""

    __slots__ = ("_buckets", "_count", "_size", "_table")

    def __init__(self, table: PackedTable) -> None:
        self._table = table
        self._buckets: MapMutation[int, bytes] = table.buckets.mutate()
        self._size, self._count = table.size, table.count

    def put(self, key: bytes, value: bytes) -> bytes | None:
        """Set the value of a key; return the value before, None if there was none."""
        number = _bucket_of(key, self._size)
        rows = self._buckets.get(number, b"")
        start = _find(rows, key, self._table.row_bytes)
        if start >= 0:
            middle, end = start + self._table.key_bytes, start + self._table.row_bytes
            self._buckets[number] = rows[:middle] + value + rows[end:]
            return rows[middle:end]
        self._buckets[number] = rows + key + value
        self._count += 1
        if self._count > self._size * _ROWS_A_BUCKET:
            self._divide()
        return None

    def pop(self, key: bytes) -> bytes | None:
        """Remove a key; return its value, None if there is none."""
        number = _bucket_of(key, self._size)
        rows = self._buckets.get(number, b"")
        start = _find(rows, key, self._table.row_bytes)
        if start < 0:
            return None
        end = start + self._table.row_bytes
        left = rows[:start] + rows[end:]
        if left:
            self._buckets[number] = left
        else:
            del self._buckets[number]
        self._count -= 1
        return rows[start + self._table.key_bytes : end]

    def get(self, key: bytes) -> bytes | None:
        """Return the value of a key, None if the table does not have it."""
        rows = self._buckets.get(_bucket_of(key, self._size), b"")
        start = _find(rows, key, self._table.row_bytes)
        return None if start < 0 else rows[start + self._table.key_bytes : start + self._table.row_bytes]

    def finish(self) -> PackedTable:
        """Return the table."""
        table = self._table
        # An empty table has one bucket again, as a new one.
        size = self._size if self._count else 1
        return PackedTable(table.key_bytes, table.row_bytes, self._buckets.finish(), size, self._count)

    def _divide(self) -> None:
        """Add a bucket: it gets rows of the one whose numbers end alike."""
        new = self._size
        old = new - (1 << new.bit_length() - 1)
        self._size += 1
        length = self._table.row_bytes
        rows = self._buckets.get(old, b"")
        parts: dict[int, list[bytes]] = {old: [], new: []}
        for start in range(0, len(rows), length):
            row = rows[start : start + length]
            parts[_bucket_of(row, self._size)].append(row)
        for number, some in parts.items():
            if some:
                self._buckets[number] = b"".join(some)
            elif number in self._buckets:
                del self._buckets[number]


def _bucket_of(key: bytes, size: int) -> int:
    """Return the bucket of a key, or of a row, which begins with it."""
    number = (int.from_bytes(key[:8], "little") * _FACTOR & _MASK) >> _SHIFT
    power = 1 << (size - 1).bit_length()
    bucket = number & power - 1
    return bucket if bucket < size else bucket - (power >> 1)


def _find(rows: bytes, key: bytes, row_bytes: int) -> int:
    """Return where the row of a key starts, -1 if it is not there."""
    start = rows.find(key)
    while start >= 0 and start % row_bytes:
        # These are bytes in the middle of rows.
        start = rows.find(key, start + 1)
    return start


def new_table(key_bytes: int, value_bytes: int) -> PackedTable:
    """Return an empty table; a key has at least eight bytes."""
    return PackedTable(key_bytes, key_bytes + value_bytes, PersistentMap(), 1, 0)
