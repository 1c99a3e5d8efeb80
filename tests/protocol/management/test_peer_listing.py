"""A listing of sessions or links walks in parts: each call makes progress, and the page is that of one walk."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from ambermq.engine.time_budget import MatchUnfinished, TimeBudget
from ambermq.protocol.management.peers.listing import Listing


class Steps:
    """A clock that moves a microsecond at each look, and counts them."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self) -> int:
        self.count += 1
        return self.count * 1000


def listing(count: int, window: tuple[int, int], budget: TimeBudget, made: list[int]) -> Listing:
    """Return a listing of `count` objects; `made` gets the number of each row that is made."""

    def row(number: int) -> Callable[[], dict[str, Any]]:
        return lambda: made.append(number) or {"number": number}  # type: ignore[func-returns-value]

    def rows() -> Iterator[Callable[[], dict[str, Any]]]:
        yield from map(row, range(count))

    return Listing(rows(), window, budget)


@pytest.mark.parametrize("window", [(0, 10), (95_000, 1000), (99_990, 1000), (200_000, 5), (50, 0)])
def test_a_hundred_thousand_links_take_many_ticks(window: tuple[int, int]) -> None:
    """No tick looks at more objects than its time allows; the page and the count are those of one walk."""
    clock, made = Steps(), list[int]()
    budget = TimeBudget(clock, duration_us=500)
    one = listing(100_000, window, budget, made)
    ticks = longest = 0
    while True:
        budget.end_ns, before = None, clock.count
        ticks += 1
        try:
            one.go_on()
        except MatchUnfinished:
            longest = max(longest, clock.count - before)
            continue
        break
    numbers = list(range(100_000))[window[0] : window[0] + window[1]]
    assert [row["number"] for row in one.rows] == numbers == made
    assert one.total == 100_000
    assert longest <= 502
    assert ticks >= 190


def test_each_tick_makes_progress() -> None:
    """Even if every look at the clock is beyond the budget."""
    clock = Steps()
    budget = TimeBudget(clock, duration_us=0)
    one = listing(20, (0, 20), budget, [])
    for tick in range(1, 20):
        budget.end_ns = None
        with pytest.raises(MatchUnfinished):
            one.go_on()
        assert one.total > tick
        if one.total == 20:
            break
