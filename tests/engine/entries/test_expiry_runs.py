"""Runs of expiries: no message expires early, none much too late, and a queue has few of them."""

from hypothesis import given
from hypothesis import strategies as st

from ambermq.engine.entries.expiry_runs import NO_RUNS, expired_ranges, expiry_of, extended, next_expiry


@given(
    st.lists(st.tuples(st.integers(0, 400_000), st.sampled_from((0, 1, 7, 1000, 60_000))), max_size=60),
    st.integers(0, 10_000_000),
)
def test_each_entry_expires_at_its_time_or_little_later(arrivals: list[tuple[int, int]], now_us: int) -> None:
    """Whatever times to live follow one another, and for each moment: by look-up, by range and by the next expiry."""
    runs, time_us, wanted = NO_RUNS, 0, {}
    for entry, (gap_us, ttl_ms) in enumerate(arrivals):
        time_us += gap_us
        runs = extended(runs, entry, time_us, ttl_ms)
        wanted[entry] = (time_us + 1000 * ttl_ms, ttl_ms) if ttl_ms else (0, 0)
    ranges = expired_ranges(runs, now_us)
    for entry, (due_us, ttl_ms) in wanted.items():
        found = expiry_of(runs, entry)
        if found > time_us or not due_us:
            # A run that has expired may have been joined with one before it.
            assert bool(found) is bool(due_us)
            assert due_us <= found <= due_us + max(1, 2 * 1000 * ttl_ms // 1024 + 2) or not due_us
        assert any(first <= entry < end for first, end in ranges) is (0 < found <= now_us)
    later = [expiry for _, expiry in runs if expiry > now_us]
    assert next_expiry(runs, now_us) == min(later, default=0)


def test_a_long_queue_has_few_runs() -> None:
    """About a thousand, however long it is fed."""
    runs = NO_RUNS
    for number in range(50_000):
        runs = extended(runs, number, number * 1_000, 5_000)
    assert len(runs) <= 1030


def test_what_never_expires_has_no_run() -> None:
    """And one behind what does."""
    assert extended(NO_RUNS, 5, 100, 0) == NO_RUNS
    runs = extended(extended(NO_RUNS, 5, 100, 1), 9, 200, 0)
    assert [expiry_of(runs, entry) > 0 for entry in (4, 5, 8, 9, 100)] == [False, True, True, False, False]
