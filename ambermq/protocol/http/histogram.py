"""A histogram of durations, as Prometheus reads it: counts below fixed bounds, the number and the sum."""

from typing import Final, final

__all__ = ["LAG_BOUNDS_US", "SYNC_BOUNDS_US", "Histogram"]

SYNC_BOUNDS_US: Final = (250, 500, 1000, 2500, 5000, 10_000, 25_000, 50_000, 100_000, 250_000, 1_000_000, 10_000_000)
"""For a sync: a quarter of a millisecond, on a fast disk, to ten seconds."""
LAG_BOUNDS_US: Final = (1000, 2500, 5000, 10_000, 25_000, 50_000, 100_000, 250_000, 1_000_000)
"""For the lag of the event loop."""


@final
class Histogram:
    """Durations in microseconds since the start."""

    __slots__ = ("bounds_us", "counts", "sum_us")

    def __init__(self, bounds_us: tuple[int, ...]) -> None:
        self.bounds_us = bounds_us
        self.counts = [0] * (len(bounds_us) + 1)
        """The number of durations up to each bound and above the one before; the last is of those above all."""
        self.sum_us = 0

    def observe(self, duration_us: int) -> None:
        """Count a duration."""
        self.sum_us += duration_us
        index = 0
        for bound_us in self.bounds_us:
            if duration_us <= bound_us:
                break
            index += 1
        self.counts[index] += 1

    @property
    def count(self) -> int:
        """The number of durations."""
        return sum(self.counts)

    def quantile_us(self, share: float) -> int | None:
        """Return the bound below which this share of the durations lies; None without durations."""
        wanted, below = share * self.count, 0
        if not wanted:
            return None
        for bound_us, count in zip(self.bounds_us, self.counts, strict=False):
            below += count
            if below >= wanted:
                return bound_us
        return self.bounds_us[-1]

    def buckets(self) -> list[tuple[str, float]]:
        """Return the bounds in seconds as text, each with the number of durations up to it."""
        rows, below = [], 0
        for bound_us, count in zip(self.bounds_us, self.counts, strict=False):
            below += count
            rows.append((f"{bound_us / 1e6:g}", float(below)))
        return [*rows, ("+Inf", float(self.count))]
