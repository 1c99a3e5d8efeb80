"""The expiry of messages by the time to live of their queue, without a word for each message.

Messages arrive in the order of their entries, so those of a short time have one expiry: a run is its first entry and
that time. A run spans a 1,024th of the time to live, and its expiry is that of its last possible message. So no message
expires early, none more than a thousandth late, and a queue has about 1,024 runs, however long it is.

    ((100, 5_000), (180, 5_010), (250, 0))    entries 100 to 179, 180 to 249, and from 250 on, which do not expire

Times are microseconds of elapsed time: the time of events without the steps of the clock (State.stepped_us).

Rule: the runs are part of the fold, so what they are for given events never changes.
"""

from bisect import bisect_right
from typing import Final

__all__ = ["NO_RUNS", "Runs", "expired_ranges", "expiry_of", "extended", "next_expiry"]

Runs = tuple[tuple[int, int], ...]
"""First entry and expiry of each run, in order; 0: its messages do not expire."""
NO_RUNS: Final[Runs] = ()
_PARTS: Final = 1024
_END: Final = 1 << 47
"""Above every entry."""


def extended(runs: Runs, first: int, time_us: int, ttl_ms: int) -> Runs:
    """Return the runs after messages arrived from entry `first` on; `ttl_ms` 0: they do not expire."""
    ttl_us = ttl_ms * 1000
    step = -(-ttl_us // _PARTS)
    expiry = time_us + ttl_us if ttl_ms else 0
    if runs:
        last = runs[-1][1]
        if last == expiry == 0 or (last and expiry and last - step <= expiry <= last):
            return runs
    elif not ttl_ms:
        return runs
    return (*_merged(runs, time_us), (first, expiry + step if ttl_ms else 0))


def _merged(runs: Runs, time_us: int) -> Runs:
    """Return the runs with neighbours joined that have expired or never expire."""
    kept: list[tuple[int, int]] = []
    for run in runs:
        if kept and (run[1] == kept[-1][1] == 0 or (0 < run[1] <= time_us and 0 < kept[-1][1] <= time_us)):
            continue
        kept.append(run)
    return tuple(kept)


def expiry_of(runs: Runs, entry: int) -> int:
    """Return the expiry of an entry; 0 if it does not expire."""
    at = bisect_right(runs, (entry, 1 << 62)) - 1
    return runs[at][1] if at >= 0 else 0


def expired_ranges(runs: Runs, time_us: int) -> list[tuple[int, int]]:
    """Return the ranges of entries that have expired, each first and end."""
    ends = [*(first for first, _ in runs[1:]), _END][: len(runs)]
    return [(first, end) for (first, expiry), end in zip(runs, ends, strict=True) if 0 < expiry <= time_us]


def next_expiry(runs: Runs, time_us: int) -> int:
    """Return the earliest expiry after a time; 0 if there is none."""
    return min((expiry for _, expiry in runs if expiry > time_us), default=0)
