"""Compact sets of attachment numbers, in two forms.

    sparse   bytes: numbers of 4 bytes, ascending      a set of 3 numbers costs 45 bytes
    dense    DenseSet: one bit for each number from 0  used if it takes less than 4 bytes for each member

The size of a dense set depends on its highest number. If 100,000 attachments have 100,000 different terms, dense sets
alone would cost 6,690 bytes per attachment. With sparse sets alone a join would cost the length of its longest set.

Rule 1. `insert_number` and `remove_number` return the set to store. It may be the argument itself, changed.
Rule 2. A set changes its form only if the other form takes half the bytes, so it does not change back and forth.
"""

import sys
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import compress, count
from typing import Final, final

__all__ = [
    "DenseSet",
    "Hits",
    "count_of",
    "insert_number",
    "numbers_in",
    "numbers_with_count",
    "pack",
    "planes_of",
    "remove_number",
    "renumber",
    "select_numbers",
]

_WIDTH: Final = array("I").itemsize
_DENSE_COUNT_MIN: Final = 64
_ONE: Final = ord("1")
_TRUTHS: Final = bytes.maketrans(b"01", b"\0\1")
_FIND_COST: Final = 5
"""The cost of a search for the next 1 bit, in steps over one bit."""


@final
class DenseSet:
    """Numbers as bits."""

    __slots__ = ("_bits", "_whole", "count")

    def __init__(self, numbers: Iterable[int] = ()) -> None:
        places = list(numbers)
        # CPython reads the base-2 text of an integer in linear time: 10 times as fast as to add each number.
        digits = bytearray(b"0") * (max(places, default=-1) + 1)
        for place in places:
            digits[place] = _ONE
        whole = int(digits[::-1] or b"0", 2)
        self._bits = bytearray(whole.to_bytes(-(-len(digits) // 8), "little"))
        self._whole: int | None = whole
        self.count = len(places)
        """The count of numbers."""

    @property
    def size(self) -> int:
        """The count of bytes of its bits."""
        return len(self._bits)

    @property
    def whole(self) -> int:
        """All bits as one integer."""
        if self._whole is None:
            self._whole = int.from_bytes(self._bits, "little")
        return self._whole

    def add(self, number: int) -> None:
        """Add a number that is not in the set."""
        missing = (number >> 3) + 1 - len(self._bits)
        if missing > 0:
            self._bits += bytes(missing)
        self._bits[number >> 3] |= 1 << (number & 7)
        self._whole = None
        self.count += 1

    def discard(self, number: int) -> None:
        """Remove a number that is in the set."""
        self._bits[number >> 3] &= ~(1 << (number & 7))
        self._whole = None
        self.count -= 1


Hits = bytes | DenseSet
"""A set of numbers in one of the two forms."""


def pack(numbers: Iterable[int]) -> bytes:
    """Return ascending numbers as a sparse set."""
    return array("I", numbers).tobytes()


def count_of(hits: Hits) -> int:
    """Return the count of numbers in a set."""
    return hits.count if isinstance(hits, DenseSet) else len(hits) // _WIDTH


def insert_number(hits: Hits, number: int) -> Hits:
    """Return the set with one more number, which is not in it."""
    if isinstance(hits, DenseSet):
        hits.add(number)
        return _compact_form(hits)
    place = bisect_left(memoryview(hits).cast("I"), number) * _WIDTH
    grown = hits[:place] + number.to_bytes(_WIDTH, sys.byteorder) + hits[place:]
    return _compact_form(grown)


def remove_number(hits: Hits, number: int) -> Hits:
    """Return the set without a number, which is in it."""
    if isinstance(hits, DenseSet):
        hits.discard(number)
        return _compact_form(hits)
    place = bisect_left(memoryview(hits).cast("I"), number) * _WIDTH
    return hits[:place] + hits[place + _WIDTH :]


def _compact_form(hits: Hits) -> Hits:
    """Return a set in its more compact form."""
    if isinstance(hits, DenseSet):
        is_thin = hits.count < _DENSE_COUNT_MIN // 2 or hits.count * _WIDTH * 2 < hits.size
        return pack(numbers_in(hits)) if is_thin else hits
    if len(hits) < _DENSE_COUNT_MIN * _WIDTH:
        return hits
    highest = int.from_bytes(hits[-_WIDTH:], sys.byteorder)
    return DenseSet(numbers_in(hits)) if highest // 8 < len(hits) else hits


def numbers_in(hits: Hits | int) -> Sequence[int]:
    """Return the numbers of a set, or the positions of the 1 bits of an integer, ascending."""
    if isinstance(hits, bytes):
        numbers = array("I")
        numbers.frombytes(hits)
        return numbers
    whole = hits.whole if isinstance(hits, DenseSet) else hits
    # CPython makes and searches the base-2 text of an integer in C: 0.1 ms for 100,000 bits, 0.1 us for each 1 bit.
    digits = bin(whole)[:1:-1]
    if whole.bit_count() * _FIND_COST > len(digits):
        return list(compress(count(), digits.encode().translate(_TRUTHS)))
    places: list[int] = []
    place = digits.find("1")
    while place >= 0:
        places.append(place)
        place = digits.find("1", place + 1)
    return places


def renumber(hits: Hits, moved: Sequence[int]) -> Hits:
    """Return the set with each number replaced by `moved[number]`; the replacement keeps the order."""
    numbers = [moved[number] for number in numbers_in(hits)]
    return _compact_form(pack(numbers)) if isinstance(hits, bytes) else DenseSet(numbers)


def planes_of(sets: Iterable[DenseSet]) -> list[int]:
    """Return, for each number, the count of sets that contain it, as bit planes.

    Bit N of the integer at index i is bit i of the count of number N. So all counts are added at once.
    """
    planes: list[int] = []
    for one in sets:
        carry = one.whole
        for place, plane in enumerate(planes):
            planes[place], carry = plane ^ carry, plane & carry
        if carry:
            planes.append(carry)
    return planes


def numbers_with_count(planes: Sequence[int], count: int) -> int:
    """Return, as bits, the numbers that are in exactly `count` of the counted sets; `count` is above 0."""
    if count >> len(planes):
        return 0
    bits = -1
    for place, plane in enumerate(planes):
        bits &= plane if count >> place & 1 else ~plane
    return bits


def select_numbers(bits: int, numbers: Iterable[int]) -> list[int]:
    """Return the numbers whose bit is 1."""
    octets = bits.to_bytes(bits.bit_length() // 8 + 1, "little")
    size = len(octets)
    return [number for number in numbers if number >> 3 < size and octets[number >> 3] >> (number & 7) & 1]
