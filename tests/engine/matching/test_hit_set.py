"""Sets of numbers against Python's own."""

import sys

from hypothesis import given, settings
from hypothesis import strategies as st

from ambermq.engine.matching.hit_set import (
    DenseSet,
    Hits,
    count_of,
    insert_number,
    numbers_in,
    numbers_with_count,
    pack,
    planes_of,
    remove_number,
    renumber,
    select_numbers,
)

_NUMBERS = st.sets(st.integers(0, 400), max_size=300)


def _made(numbers: set[int]) -> Hits:
    hits: Hits = b""
    for number in numbers:
        hits = insert_number(hits, number)
    return hits


@settings(max_examples=60, deadline=None)
@given(numbers=_NUMBERS, gone=_NUMBERS)
def test_a_set_holds_what_was_included_and_not_excluded(numbers: set[int], gone: set[int]) -> None:
    """In whichever form it is on the way."""
    hits = _made(numbers)
    assert list(numbers_in(hits)) == sorted(numbers)
    for number in gone & numbers:
        hits = remove_number(hits, number)
    assert list(numbers_in(hits)) == sorted(numbers - gone)
    assert count_of(hits) == len(numbers - gone)


@settings(max_examples=60, deadline=None)
@given(numbers=_NUMBERS, steps=st.lists(st.integers(1, 3), min_size=401, max_size=401))
def test_numbers_move_in_order(numbers: set[int], steps: list[int]) -> None:
    """Each number becomes what the table says."""
    moved = [sum(steps[:place]) for place in range(401)]
    assert list(numbers_in(renumber(_made(numbers), moved))) == sorted(moved[number] for number in numbers)


@settings(max_examples=100, deadline=None)
@given(sets=st.lists(st.sets(st.integers(0, 40)), max_size=9), numbers=st.sets(st.integers(0, 400)))
def test_side_by_side_counting_finds_exact_counts(sets: list[set[int]], numbers: set[int]) -> None:
    """A number is found where it lies in just so many of the sets."""
    planes = planes_of(DenseSet(one) for one in sets)
    for count in range(1, 12):
        expected = [number for number in range(41) if sum(number in one for one in sets) == count]
        assert list(numbers_in(numbers_with_count(planes, count))) == expected
        selected = select_numbers(numbers_with_count(planes, count), numbers)
        assert selected == [number for number in numbers if number in expected]


def test_bits_are_used_where_they_are_smaller() -> None:
    """Many numbers close together take a bit each, few or far ones four bytes each."""
    close, far = _made(set(range(1000))), _made(set(range(0, 100_000, 100)))
    assert isinstance(close, DenseSet)
    assert close.size == 125
    assert isinstance(far, bytes)
    assert len(far) == 4000
    assert sys.getsizeof(pack([1, 2, 3])) <= 48


def test_a_set_that_thins_out_is_packed_again() -> None:
    """Bits are given up when they take twice the room."""
    hits = _made(set(range(10_000)))
    for number in range(9_900):
        hits = remove_number(hits, number)
    assert isinstance(hits, bytes)
    assert list(numbers_in(hits)) == list(range(9_900, 10_000))
