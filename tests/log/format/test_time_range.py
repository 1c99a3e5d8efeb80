"""The times of records: the bounds of all of them, in whatever order they come."""

from hypothesis import given
from hypothesis import strategies as st

from ambermq.log.format.record import RECORD
from ambermq.log.format.time_range import TimeRange, range_of_records, union

_TIMES = st.integers(-(1 << 50), 1 << 50)


@given(_TIMES, st.lists(_TIMES | st.just(0), min_size=1, max_size=5))
def test_a_range_has_every_record(base_us: int, deltas: list[int]) -> None:
    """The least and the greatest time, whether the first record has them or another one."""
    records = b"".join(RECORD.pack(at, 1, 2, 3, -4, 5, delta, 6, 7, 8, 9) for at, delta in enumerate(deltas))
    times = [base_us + delta for delta in deltas]
    assert range_of_records(base_us, records) == TimeRange(min(times), max(times))


def test_a_union_has_both() -> None:
    """None is a range of nothing."""
    assert union(TimeRange(3, 5), None, TimeRange(1, 2)) == TimeRange(1, 5)
    assert union(None) is None
