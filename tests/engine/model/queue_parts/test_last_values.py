"""The keys of a last-value queue: a bijection between keys and newest words, in little memory."""

import random
import tracemalloc

from hypothesis import given, settings
from hypothesis import strategies as st

from ambermq.engine.entries.entry_word import pack_words
from ambermq.engine.model.queue_parts.last_values import (
    KEY_BYTES,
    LastValues,
    keyed_by,
    only_words,
    restored,
    with_keys,
    without_keys,
)

COUNT = 30_000


def _key(number: int) -> bytes:
    return number.to_bytes(KEY_BYTES, "big")


def _filled(count: int) -> LastValues | None:
    values, rng = None, random.Random(1)
    for start in range(0, count, 100):
        words = [((start + turn) << 16 | 100, rng.randbytes(KEY_BYTES)) for turn in range(100)]
        values = with_keys(values, words, ())
    return values


def test_a_million_keys_take_at_most_150_bytes_each() -> None:
    """Measured with fewer, since a key takes as much in any table."""
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        values = _filled(COUNT)
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert values is not None
    assert values.newest.count == COUNT
    assert (after - before) / COUNT < 150


@given(st.randoms(use_true_random=False), st.integers(1, 80))
@settings(max_examples=60, deadline=None)
def test_it_is_a_dict_of_the_newest(rng: random.Random, steps: int) -> None:
    """And what was replaced, until it leaves; a restored one is equal."""
    values: LastValues | None = None
    newest, scheduled, replaced, offset = dict[bytes, int](), dict[int, bytes](), set[int](), 1
    for _ in range(steps):
        step = rng.randrange(4)
        key, word = _key(rng.randrange(6)), offset << 16 | 7
        offset += 1
        if step < 2:
            values = with_keys(values, [(word, key)], ())
            if key in newest:
                replaced.add(newest[key])
            newest[key] = word
        elif step == 2:
            values = with_keys(values, (), [(word, key)])
            scheduled[word] = key
        else:
            known = [*newest.values(), *scheduled, *replaced]
            gone = rng.sample(known, min(len(known), 3))
            values = values and without_keys(values, pack_words(sorted(gone)))
            newest = {one: at for one, at in newest.items() if at not in gone}
            scheduled = {at: one for at, one in scheduled.items() if at not in gone}
            replaced -= set(gone)
        assert (values is None) is not bool(newest or scheduled or replaced)
        if values is None:
            continue
        assert {one: values.newest_of(one) for one in newest} == newest
        rows = sorted([*((at, one) for one, at in newest.items()), *scheduled.items()])
        assert [(at, values.key_of(at)) for at, _ in rows] == rows
        assert (values.keys.count, values.newest.count) == (len(rows), len(newest))
        assert set(values.replaced) == replaced
        assert restored(rows, set(scheduled), values.replaced) == values
        assert only_words(values, [*newest.values(), *scheduled, *replaced], scheduled) == values


def test_keys_are_cut_from_a_record() -> None:
    """Sixteen bytes each."""
    assert keyed_by(_key(1) + _key(2)) == [_key(1), _key(2)]
