"""A persistent column: a number for each of many keys, in blocks of packed numbers instead of objects.

    block   for the keys of a range of 512: the rising keys, then their values, packed u64
    table   a persistent map of blocks by range

Rule 1. `with_value` and `without` return a new column, and leave the old one unchanged. Each block that they touch is
        copied, 8 KiB at most, and the others are shared.
Rule 2. A key with its value takes 16 bytes. So a million of them take 16 MiB, where a map of objects takes 200.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import groupby
from struct import pack
from typing import final

from msgspec import Struct

from ambermq.snapshot.persistent_map import PersistentMap
from ambermq.snapshot.word_chunk import WORD_BYTES, unpack_words

__all__ = ["EMPTY_COLUMN", "PersistentColumn", "block_end", "block_number"]

_SHIFT = 9


@final
class PersistentColumn(Struct, frozen=True):
    """An immutable map of u64 keys to u64 values; `EMPTY_COLUMN` is the empty one."""

    _blocks: "PersistentMap[int, bytes]"
    count: int
    """The number of keys."""

    def get(self, key: int) -> int:
        """Return the value of a key; 0 without one."""
        block = self._blocks.get(key >> _SHIFT)
        if block is None:
            return 0
        numbers = memoryview(block).cast("Q")
        half = len(numbers) // 2
        index = bisect_left(numbers, key, 0, half)
        return numbers[half + index] if index < half and numbers[index] == key else 0

    def values_of(self, keys: Sequence[int]) -> list[int]:
        """Return the values of keys as `get` does; neighbours cost a fifth of that if they rise."""
        found: list[int] = []
        number, numbers, half = -1, memoryview(b"").cast("Q"), 0
        for key in keys:
            if key >> _SHIFT != number:
                number = key >> _SHIFT
                numbers = memoryview(self._blocks.get(number, b"")).cast("Q")
                half = len(numbers) // 2
            index = bisect_left(numbers, key, 0, half)
            found.append(numbers[half + index] if index < half and numbers[index] == key else 0)
        return found

    @property
    def block_count(self) -> int:
        """Return the number of blocks."""
        return len(self._blocks)

    def has_block(self, number: int) -> bool:
        """Return whether a key of the block `number` is here."""
        return number in self._blocks

    def blocks(self) -> Iterator[tuple[bytes, bytes]]:
        """Yield packed rising keys and their values, block by block in the order of the keys."""
        for start in sorted(self._blocks):
            block = self._blocks[start]
            half = len(block) // 2
            yield block[:half], block[half:]

    def block_of(self, key: int) -> tuple[bytes, bytes]:
        """Return the packed rising keys of the block that `key` belongs to, and their values; no bytes without any."""
        block = self._blocks.get(key >> _SHIFT, b"")
        half = len(block) // 2
        return block[:half], block[half:]

    def items(self) -> Iterator[tuple[int, int]]:
        """Yield keys and values in the order of the keys."""
        for keys, values in self.blocks():
            yield from zip(unpack_words(keys), unpack_words(values), strict=True)

    def with_value(self, keys: Sequence[int], value: int) -> "PersistentColumn":
        """Return the column with one value for each of `keys`, which rise."""
        return self.with_values(keys, (value,) * len(keys))

    def with_values(self, keys: Sequence[int], values: Sequence[int]) -> "PersistentColumn":
        """Return the column with a value for each of `keys`, which rise."""
        return self.with_packed(pack(f"<{len(keys)}Q", *keys), pack(f"<{len(keys)}Q", *values))

    def with_packed(self, keys: bytes, values: bytes) -> "PersistentColumn":
        """Return the same for packed keys and values, without an object for each."""
        numbers = memoryview(keys).cast("Q")
        if numbers and numbers[0] >> _SHIFT == numbers[-1] >> _SHIFT:
            number = numbers[0] >> _SHIFT
            block = self._blocks.get(number, b"")
            after = _merged(block, keys, values)
            added = (len(after) - len(block)) // (2 * WORD_BYTES)
            return PersistentColumn(self._blocks.set(number, after), self.count + added)
        blocks, count, start = self._blocks.mutate(), self.count, 0
        while start < len(numbers):
            number = numbers[start] >> _SHIFT
            end = bisect_left(numbers, (number + 1) << _SHIFT, start)
            some = slice(start * WORD_BYTES, end * WORD_BYTES)
            block = blocks.get(number, b"")
            after = _merged(block, keys[some], values[some])
            count += (len(after) - len(block)) // (2 * WORD_BYTES)
            blocks[number] = after
            start = end
        return PersistentColumn(blocks.finish(), count)

    def without(self, keys: Sequence[int]) -> "PersistentColumn":
        """Return the column without those of `keys` that it has; they rise."""
        blocks, count = self._blocks.mutate(), self.count
        for number, group in groupby(keys, block_number):
            block = blocks.get(number)
            if block is None:
                continue
            after = _less(block, list(group))
            count -= (len(block) - len(after)) // (2 * WORD_BYTES)
            if after:
                blocks[number] = after
            else:
                del blocks[number]
        return PersistentColumn(blocks.finish(), count)


def block_number(key: int) -> int:
    """Return the number of the block that a key belongs to."""
    return key >> _SHIFT


def block_end(key: int) -> int:
    """Return the key after the last one of the block that a key belongs to."""
    return ((key >> _SHIFT) + 1) << _SHIFT


def _merged(block: bytes, keys: bytes, values: bytes) -> bytes:
    """Return a block with packed rising keys and their values."""
    half = len(block) // 2
    last, first = block[half - WORD_BYTES : half], keys[:WORD_BYTES]
    if not block or int.from_bytes(last, "little") < int.from_bytes(first, "little"):
        # The frequent case: keys that come rise.
        return b"".join((block[:half], keys, block[half:], values))
    known = dict(zip(unpack_words(block[:half]), unpack_words(block[half:]), strict=True))
    known.update(zip(unpack_words(keys), unpack_words(values), strict=True))
    rising = sorted(known)
    return pack(f"<{2 * len(known)}Q", *rising, *[known[key] for key in rising])


def _less(block: bytes, keys: list[int]) -> bytes:
    """Return a block without some keys."""
    half = len(block) // 2
    numbers = memoryview(block).cast("Q")
    first = bisect_left(numbers, keys[0], 0, half // WORD_BYTES)
    start, stop = first * WORD_BYTES, (first + len(keys)) * WORD_BYTES
    if stop <= half and numbers[first] == keys[0] and numbers[first : first + len(keys)].tolist() == keys:
        # The frequent case: neighbours go.
        return b"".join((block[:start], block[stop : half + start], block[half + stop :]))
    known = unpack_words(block[:half])
    gone = set(keys)
    kept = [index for index, key in enumerate(known) if key not in gone]
    if len(kept) == len(known):
        return block
    values = unpack_words(block[half:])
    return pack(f"<{2 * len(kept)}Q", *[known[index] for index in kept], *[values[index] for index in kept])


EMPTY_COLUMN = PersistentColumn(PersistentMap(), 0)
