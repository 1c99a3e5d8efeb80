"""The token bucket: how many messages pass in which time."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ambermq.engine.dispatch.token_bucket import RATE_MAX, RATE_MIN, TokenBucket

SECOND = 1_000_000


@pytest.mark.parametrize(("rate", "burst"), [(0.5, 1), (1, 1), (20, 1), (100, 5), (RATE_MAX, 50_000)])
def test_it_begins_with_the_messages_of_50_ms(rate: float, burst: int) -> None:
    """At least one, and never has more."""
    bucket = TokenBucket(rate, 7)
    assert bucket.available == burst
    bucket.refill(100_000_000 * SECOND)
    assert bucket.available == burst
    bucket.take(burst)
    assert bucket.available == 0
    bucket.take(-burst - 3)
    assert bucket.available == burst


def test_its_time_is_exact() -> None:
    """A message each third of a second, neither earlier nor later; a batch of 10 ms for a high rate."""
    bucket = TokenBucket(3, 0)
    bucket.take(1)
    assert bucket.due_us(5) == 333_334
    bucket.refill(333_333)
    assert bucket.available == 0
    bucket.refill(333_334)
    assert bucket.available == 1
    fast = TokenBucket(10_000, 0)
    fast.take(500)
    assert fast.due_us(1000) == 10_000
    assert fast.due_us(1) == 100


@given(
    rate=st.one_of(st.floats(RATE_MIN, RATE_MAX), st.integers(1, RATE_MAX)),
    waits=st.lists(st.integers(0, 2 * SECOND), min_size=1, max_size=30),
    parts=st.lists(st.floats(0, 1), min_size=30, max_size=30),
)
def test_no_time_has_more_than_its_messages(rate: float, waits: list[int], parts: list[float]) -> None:
    """In any time: rate * time, and those of 50 ms, or one."""
    bucket, now_us, taken = TokenBucket(rate, 0), 0, []
    for wait_us, part in zip(waits, parts, strict=False):
        now_us += wait_us
        bucket.refill(now_us)
        count = round(bucket.available * part)
        assert bucket.available >= count >= 0
        bucket.take(count)
        taken.append((now_us, count))
    exact = max(round(rate * 1000), 1) / 1000
    for first, (begin_us, _) in enumerate(taken):
        total = 0
        for end_us, count in taken[first:]:
            total += count
            assert total <= exact * (end_us - begin_us) / SECOND + max(exact / 20, 1) + 1e-6


@given(rate=st.floats(RATE_MIN, RATE_MAX), count=st.integers(1, 1000))
def test_at_its_time_messages_are_there(rate: float, count: int) -> None:
    """So a timer makes progress."""
    bucket = TokenBucket(rate, 0)
    bucket.take(bucket.available)
    due_us = bucket.due_us(count)
    assert due_us > 0
    bucket.refill(due_us)
    assert bucket.available >= 1
