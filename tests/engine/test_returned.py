"""Entries that come back stand in the order of their offsets."""

from hypothesis import given
from hypothesis import strategies as st

from engine.returned import merge_returned
from engine.word import pack_words
from snapshot.queue import EMPTY_QUEUE

NUMBERS = st.lists(st.integers(0, 6000), unique=True, max_size=60)


@given(runs=st.lists(NUMBERS, max_size=8), spread=st.sampled_from([1, 977]), bulk=st.booleans())
def test_runs_in_any_order_come_back_in_theirs(runs: list[list[int]], spread: int, *, bulk: bool) -> None:
    """Whatever came back when, and in what order: the queue is sorted, holds each once, and old versions stay."""
    returned, expected = EMPTY_QUEUE, list[int]()
    if bulk:
        expected = list(range(0, 6000 * spread, 2 * spread))
        returned = returned.push(pack_words(expected))
    for numbers in runs:
        fresh = [number * spread for number in numbers if number * spread not in expected]
        before = list(returned)
        merged = merge_returned(returned, pack_words(fresh))
        assert list(returned) == before
        expected = sorted(expected + fresh)
        returned = merged
        assert list(returned) == expected
        assert len(returned) == len(expected)
