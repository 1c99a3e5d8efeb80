"""The verdict on a soak: pure, from the samples of the broker's last life and the latencies in it.

    memory         the medians of the second and of the last quarter differ by at most 10 % and 4 MiB
    descriptors    the same medians differ by at most 4
    threads        the same medians differ by at most 2
    latency        the median is at most 25 ms, the 99th percentile at most 250 ms
    latency drift  the median of the last quarter is at most twice that of the second quarter, and 5 ms
    disk           the medians differ by at most half and 64 MiB: history is compacted away

The first quarter is left out, because caches fill. Growth is not judged in a life of less than two minutes.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

__all__ = ["Finding", "Latency", "Sample", "judge", "percentile"]

_MIB: Final = 1 << 20
LIFE_SECONDS_MIN: Final = 120.0
_MEDIAN_MS_MAX: Final = 25.0
_TAIL_MS_MAX: Final = 250.0


@dataclass(frozen=True, slots=True)
class Sample:
    """The broker at one moment."""

    at_s: float
    """Seconds since the begin of the soak."""
    rss_bytes: int
    """Resident memory."""
    descriptors: int
    """Open file descriptors."""
    threads: int
    """Threads."""
    disk_bytes: int
    """The room that the data directory takes."""


@dataclass(frozen=True, slots=True)
class Latency:
    """One message of the probe."""

    at_s: float
    """Seconds since the begin of the soak, when it was sent."""
    milliseconds: float
    """The time until it was delivered, after its sync."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the verdict."""

    name: str
    """What was judged."""
    figure: str
    """What was measured, and the bar."""
    holds: bool
    """Whether the bar holds."""


def judge(samples: Sequence[Sample], latencies: Sequence[Latency]) -> list[Finding]:
    """Return the findings on one life of the broker, in the order of the table above."""
    if not samples or not latencies:
        return [Finding("samples", f"{len(samples)} samples, {len(latencies)} latencies", holds=False)]
    findings = [_tail(latencies)]
    if samples[-1].at_s - samples[0].at_s < LIFE_SECONDS_MIN:
        return findings
    return [
        _growth("memory", samples, lambda one: one.rss_bytes / _MIB, "MiB", share=0.10, more=4),
        _growth("descriptors", samples, lambda one: one.descriptors, "", share=0, more=4),
        _growth("threads", samples, lambda one: one.threads, "", share=0, more=2),
        *findings,
        _drift(samples, latencies),
        _growth("disk", samples, lambda one: one.disk_bytes / _MIB, "MiB", share=0.5, more=64),
    ]


def percentile(values: Sequence[float], share: float) -> float:
    """Return the value below which a share of the values lies."""
    ordered = sorted(values)
    return ordered[min(int(share * len(ordered)), len(ordered) - 1)]


def _growth(
    name: str, samples: Sequence[Sample], value: Callable[[Sample], float], unit: str, *, share: float, more: float
) -> Finding:
    early, late = (median(map(value, quarter)) for quarter in _quarters(samples))
    bar = early * (1 + share) + more
    figure = f"{early:.1f} -> {late:.1f} {unit}".rstrip()
    return Finding(name, f"{figure}, at most {bar:.1f}", late <= bar)


def _quarters(samples: Sequence[Sample]) -> tuple[list[Sample], list[Sample]]:
    """Return the samples of the second and of the last quarter of the time."""
    begin, end = samples[0].at_s, samples[-1].at_s
    quarter = (end - begin) / 4
    second = [one for one in samples if begin + quarter <= one.at_s < begin + 2 * quarter]
    return second, [one for one in samples if one.at_s >= end - quarter]


def _tail(latencies: Sequence[Latency]) -> Finding:
    values = [one.milliseconds for one in latencies]
    middle, tail = median(values), percentile(values, 0.99)
    figure = (
        f"median {middle:.1f} ms, at most {_MEDIAN_MS_MAX:.0f}; 99 % {tail:.1f} ms, at most {_TAIL_MS_MAX:.0f}; "
        f"longest {max(values):.0f} ms of {len(values)}"
    )
    return Finding("latency", figure, middle <= _MEDIAN_MS_MAX and tail <= _TAIL_MS_MAX)


def _drift(samples: Sequence[Sample], latencies: Sequence[Latency]) -> Finding:
    medians = []
    for quarter in _quarters(samples):
        values = [one.milliseconds for one in latencies if quarter[0].at_s <= one.at_s <= quarter[-1].at_s]
        medians.append(median(values) if values else float("inf"))
    early, late = medians
    bar = 2 * early + 5
    return Finding("latency drift", f"{early:.1f} -> {late:.1f} ms, at most {bar:.1f}", late <= bar)
