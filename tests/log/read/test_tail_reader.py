"""Stretches: the batches of a running log read again, wherever they lie."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ambermq.log.errors import DamageError
from tests.log.lives import DIRECTORY, Life, body_of
from tests.log.simulated import SimulatedStorage


def read_all(life: Life, first: int) -> list[int]:
    """Return the offsets of all records from `first` on, one tail reader at a time."""
    found: list[int] = []
    while first < life.log.durable_end:
        stretch = life.log.tail_reader(first)
        records = [record.offset for batch in stretch.batches() for record in batch.record_list()]
        assert all(offset < life.log.durable_end for offset in records)
        found += [offset for offset in records if offset >= first]
        following = records[-1] + 1 if records else stretch.end
        assert following > first
        first = following
    return found


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.lists(st.integers(0, 3000), min_size=1, max_size=4), min_size=1, max_size=12),
    st.integers(0, 3),
    st.data(),
)
def test_every_durable_record_is_read_again(batches: list[list[int]], lives: int, data: st.DataObject) -> None:
    """Over rolls and restarts, from any offset: each record once, in order, and none that is not durable."""
    storage = SimulatedStorage(random.Random(0))
    life = Life(storage)
    written: list[int] = []
    for index, sizes in enumerate(batches):
        if lives and index % (lives + 1) == lives:
            life.log.close()
            life = Life(storage)
        written += life.write([body_of(index * 100 + number, size) for number, size in enumerate(sizes)])
        life.log.request_sync()
        life.log.completed()
    volatile = life.write([b"not synced"])
    first = data.draw(st.sampled_from([0, *written]), "first")
    assert read_all(life, first) == [offset for offset in written if offset >= first]
    life.log.request_sync()
    life.log.completed()
    assert read_all(life, first) == [offset for offset in written + volatile if offset >= first]


def test_damage_is_named() -> None:
    """A batch that is not as it was written raises DamageError with its file; those before it are read."""
    storage = SimulatedStorage(random.Random(0))
    life = Life(storage)
    offsets = [life.write([b"x" * 100])[0] for _ in range(5)]
    life.log.request_sync()
    life.log.completed()
    stretch = life.log.tail_reader(offsets[0])
    whole = [batch.header for batch in stretch.batches()]
    storage.damage(stretch.path, 4096 + sum(header.length for header in whole[:3]) + 20, b"\xff")
    assert [batch.header.base_offset for batch in life.log.tail_reader(offsets[0]).batches()] == offsets[:3]
    with pytest.raises(DamageError) as caught:
        list(life.log.tail_reader(offsets[3]).batches())
    assert caught.value.file == stretch.path
    assert stretch.path.startswith(DIRECTORY)
