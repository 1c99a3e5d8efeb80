"""A packed table is a dict of rows: each version stays as it was, and a million rows are no million objects."""

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from ambermq.snapshot.packed_table import PackedTable, new_table


def _key(number: int) -> bytes:
    return number.to_bytes(8, "little")


def _filled(numbers: range) -> PackedTable:
    draft = new_table(8, 4).mutate()
    for number in numbers:
        draft.put(_key(number), number.to_bytes(4, "big"))
    return draft.finish()


@given(st.integers(0, 1 << 32), st.integers(1, 300))
@settings(max_examples=60, deadline=None)
def test_it_is_a_dict(seed: int, steps: int) -> None:
    """After any changes; the versions before do not change."""
    rng = random.Random(seed)
    table, model, older = new_table(8, 4), dict[bytes, bytes](), list[tuple[PackedTable, dict[bytes, bytes]]]()
    for _ in range(steps):
        draft = table.mutate()
        for _ in range(rng.randint(1, 9)):
            # Few values, so that a key is found in the middle of rows too.
            key = _key(rng.choice((rng.randrange(200), rng.randrange(1 << 64), 0x0101_0101_0101_0101)))
            if rng.random() < 0.4:
                assert draft.pop(key) == model.pop(key, None)
            else:
                value = rng.choice((bytes(4), b"\1\1\1\1", rng.randbytes(4)))
                assert draft.put(key, value) == model.get(key)
                model[key] = value
            assert draft.get(key) == model.get(key)
        table = draft.finish()
        older.append((table, dict(model)))
    for one, known in older:
        assert dict(one.items()) == known
        assert len(one) == len(known)
        assert all(one.get(key) == value for key, value in known.items())


def test_the_buckets_follow_the_rows() -> None:
    """None is much longer than the others, and an empty table has one bucket."""
    table = _filled(range(0, 100_000, 7))
    assert max(map(len, table.buckets.values())) <= 12 * 32 * 6
    assert table.size == -(-len(table) // 32)
    draft = table.mutate()
    for key, _ in list(table.items()):
        draft.pop(key)
    assert (draft.finish().size, len(draft.finish().buckets)) == (1, 0)


def test_equality_is_that_of_the_rows() -> None:
    """Whatever the buckets are: one that has grown equals one that was made at once."""
    grown = _filled(range(1000))
    shrunk = _filled(range(5000)).mutate()
    for number in range(1000, 5000):
        shrunk.pop(_key(number))
    made = new_table(8, 4).filled((key + value for key, value in grown.items()), len(grown))
    assert grown == shrunk.finish() == made
    assert made != _filled(range(1001))
    assert made != "made"
    assert "1000" in repr(made)
