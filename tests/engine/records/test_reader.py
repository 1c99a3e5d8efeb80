"""Runs of alike messages: read row by row or column by column, they are the same events."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ambermq.engine.events import Event, Started
from ambermq.engine.records import reader
from ambermq.engine.records.alike_rows import alike_sizes
from ambermq.engine.records.reader import events_of
from ambermq.log.format.record import RECORD
from tests.engine.records.test_writer import BASE, NOW_US, published, written

COLUMNS = ("size", "meta", "hash", "queue", "ref", "time", "count", "aux", "type", "flags")
ROW = (100, 0, 7, 3, 9, 5, 1, 0, 12, 1)

runs = st.lists(
    st.tuples(
        st.integers(1, 300),
        st.sampled_from([(5,), (6,), (5, 6)]),
        st.sampled_from([1, 2]),
        st.booleans(),
        st.lists(st.sampled_from([0, 10, 11, 5000]), min_size=1, max_size=2),
        st.integers(0, 2),
    ),
    min_size=1,
    max_size=6,
)


def rows(number: int, first: int = 0, **columns: int) -> bytes:
    """Return alike records at consecutive offsets, with some columns replaced."""
    values = dict(zip(COLUMNS, ROW, strict=True)) | columns
    return b"".join(RECORD.pack(first + index, *values.values()) for index in range(number))


@settings(max_examples=60, deadline=None)
@given(runs)
@example([(300, (5,), 1, True, [10], 0), (300, (5,), 1, True, [10], 0)])
@example([(300, (5,), 1, True, [10], 0), (300, (6,), 1, True, [10], 0)])
def test_columns_give_what_rows_give(
    parts: list[tuple[int, tuple[int, ...], int, bool, list[int], int]],
) -> None:
    """Whatever the lengths of runs, their sizes, and the records between them."""
    offset, events = BASE, list[Event]()
    for count, queues, producer, is_durable, sizes, others in parts:
        all_sizes = [sizes[index % len(sizes)] for index in range(count)]
        events.append(published(offset, all_sizes, queues=queues, producer=producer, durable=is_durable))
        offset += count
        for _ in range(others):
            events.append(Started(offset, NOW_US, 3))
            offset += 1
    batch = written(events)
    found = list(events_of(batch))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(reader, "alike_sizes", lambda _records, _row: [])
        assert found == list(events_of(batch))
    assert found[-1].offset < offset


@pytest.mark.parametrize("count", [1, 2, 63, 64, 65, 126, 127, 128, 500, 2000])
def test_a_run_is_found_whole(count: int) -> None:
    """Up to the end of the batch, for every size of a window."""
    assert alike_sizes(rows(count), 0) == [100] * (count - 1)
    assert alike_sizes(rows(3) + rows(count, first=50), 3) == [100] * (count - 1)


@pytest.mark.parametrize("column", [name for name in COLUMNS if name not in {"size", "hash"}])
@pytest.mark.parametrize("place", [1, 62, 63, 64, 200, 399])
def test_a_run_ends_before_a_record_that_differs(column: str, place: int) -> None:
    """In any column, at any place: no record behind it is taken for one of the run."""
    one = ROW[COLUMNS.index(column)] + 1
    records = rows(place) + rows(1, first=place, **{column: one}) + rows(400, first=place + 1)
    assert len(alike_sizes(records, 0)) < place


@pytest.mark.parametrize("place", [1, 63, 64, 200, 399])
def test_a_run_ends_at_a_gap(place: int) -> None:
    """A record that a compaction left out is no record of the run."""
    assert len(alike_sizes(rows(place) + rows(400, first=place + 1), 0)) < place


@pytest.mark.parametrize("count", [65, 200, 351, 1000, 5000])
def test_few_rows_of_a_run_are_left(count: int) -> None:
    """Where it ends in the middle of a batch, as before the due times of its messages."""
    records = rows(count) + rows(1, first=count, ref=7) + rows(2000, first=count + 1)
    assert count - 64 <= len(alike_sizes(records, 0)) + 1 <= count


def test_sizes_and_hashes_may_differ() -> None:
    """A run holds messages of any size."""
    records = b"".join(rows(1, first=index, size=index % 5, hash=index) for index in range(300))
    assert alike_sizes(records, 0) == [index % 5 for index in range(1, 300)]
