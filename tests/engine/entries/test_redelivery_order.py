"""Entries that come back stand in the order of their offsets."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ambermq.engine.entries.entry_word import WORD_BYTES, pack_words, unpack_words
from ambermq.engine.entries.redelivery_order import merge_returned
from ambermq.snapshot.persistent_queue import EMPTY_QUEUE

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


def test_what_lies_among_others_takes_none_of_them_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Consumers of one queue that go together hold each a part of everywhere: each run is looked at, and no more."""
    seen = 0

    def unpacked(words: bytes) -> tuple[int, ...]:
        nonlocal seen
        seen += len(words) // WORD_BYTES
        return unpack_words(words)

    monkeypatch.setattr("ambermq.engine.entries.redelivery_order.unpack_words", unpacked)
    monkeypatch.setattr("ambermq.snapshot.chunk_tree.unpack_words", unpacked)
    returned, consumers, each = EMPTY_QUEUE, 300, 8
    for consumer in range(consumers):
        returned = merge_returned(returned, pack_words(range(consumer, consumers * each, consumers)))
    assert list(returned) == list(range(consumers * each))
    # The first few are as many as what they lie among, and sorted with it.
    assert seen <= 2 * consumers * each
