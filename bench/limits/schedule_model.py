"""`python -m bench.limits.schedule_model`: a model of settle time and load of the loop, by schedule and rate.

The model has one loop, one disk and senders that send messages at random times, independent of each other. The costs
of a wake-up, a tick, a message, a sync and its end are round figures of the right size, not measured ones. It shows
what a schedule can do before it is written, and which cost matters. `each` steps after every read. `wait` gives a lone
message 1.5 ms for others to join. `sync` is the schedule of the engine: at once if the disk is idle, else when its sync
ends.
"""

import random
import statistics
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from rich.console import Console
from rich.table import Table

__all__ = ["RATES", "Figures", "simulate"]

RATES: Final = (100, 1000, 2000, 5000, 10_000, 20_000, 50_000)
SCHEDULES: Final = ("each", "wait", "sync")
_READ_US: Final = 20.0
"""A wake-up for a socket with its read."""
_TICK_US: Final = 70.0
"""A tick with its write and the request of a sync."""
_END_US: Final = 50.0
"""The end of a sync: its wake-up, and the flush of two connections."""
_MESSAGE_US: Final = 4.0
"""Each message, in each of these three."""
_SETTLE_US: Final = 60.0
"""The receiver's settlements, at most every 8 ms."""
_SYNC_US: Final = (150.0, 300.0)
"""A sync: its least time and its median; what is above the least is lognormal."""
_WAIT_US: Final = 1500.0


@dataclass(frozen=True, slots=True)
class Figures:
    """The settle times of a run in milliseconds, the part of the time that the loop works, and messages a tick."""

    p50_ms: float
    p99_ms: float
    load: float
    messages_per_tick: float


def _arrivals(rate: int, count: int, random_: random.Random) -> Iterator[float]:
    time_us = 0.0
    for _ in range(count):
        time_us += random_.expovariate(rate / 1e6)
        yield time_us


def _sync_us(random_: random.Random) -> float:
    least, median = _SYNC_US
    return least + (median - least) * random_.lognormvariate(0.0, 0.9)


def simulate(schedule: str, rate: int, *, count: int = 20_000, seed: int = 1) -> Figures:
    """Return the figures of a schedule at a rate of messages a second."""
    random_ = random.Random(seed)
    unread = deque(_arrivals(rate, count, random_))
    gathered: list[float] = []
    written: list[float] = []
    syncing: list[float] = []
    ends_us = settle_us = float("inf")
    now_us = busy_us = 0.0
    settled: list[float] = []
    ticks = 0
    while len(settled) < count:
        wakes_us = [ends_us, settle_us]
        wakes_us.append(unread[0] if unread else float("inf"))
        if gathered and not syncing and schedule == "wait":
            wakes_us.append(gathered[0] + _WAIT_US)
        now_us = max(now_us, min(wakes_us))
        began_us = now_us
        has_ended = ends_us <= now_us
        arrived = list[float]()
        while unread and unread[0] <= now_us:
            arrived.append(unread.popleft())
        if arrived:
            now_us += _READ_US + _MESSAGE_US * len(arrived)
            gathered += arrived
        if settle_us <= now_us:
            now_us += _SETTLE_US
            settle_us = float("inf")
        released = syncing if has_ended else []
        if has_ended:
            syncing, ends_us = [], float("inf")
        is_due = bool(gathered) and (schedule == "each" or not syncing)
        if schedule == "wait" and is_due and now_us < gathered[0] + _WAIT_US and not released:
            is_due = False
        if is_due:
            now_us += _TICK_US + _MESSAGE_US * len(gathered)
            ticks += 1
            written += gathered
            gathered = []
        if written and not syncing:
            syncing, written = written, []
            ends_us = now_us + _sync_us(random_)
        if released:
            now_us += _END_US + _MESSAGE_US * len(released)
            settled += [now_us - sent_us for sent_us in released]
            settle_us = min(settle_us, now_us + 8000.0)
        busy_us += now_us - began_us
    cuts = statistics.quantiles(settled, n=100)
    return Figures(cuts[49] / 1e3, cuts[98] / 1e3, busy_us / now_us, count / ticks)


def main() -> None:
    """Print the table: a row for each rate, three columns for each schedule."""
    table = Table("messages/s", *(f"{name}: p50 / p99 ms, load" for name in SCHEDULES))
    for rate in RATES:
        rows = [simulate(name, rate) for name in SCHEDULES]
        table.add_row(f"{rate:,}", *(f"{one.p50_ms:.2f} / {one.p99_ms:.2f}, {one.load:.2f}" for one in rows))
    Console(width=110).print(table)


if __name__ == "__main__":
    main()
