"""The verdict on a soak: pure, from the samples of the broker's last life and the latencies in it.

    memory         the medians of the second and of the last quarter differ by at most 10 % and 4 MiB
    descriptors    the same medians differ by at most 4
    threads        the same medians differ by at most 2
    latency        the median is at most 25 ms and 4 times that of the disk, the 99th percentile 100 ms and 4 times
    latency drift  the median of the last quarter is at most twice that of the second quarter, and 5 ms
    disk           the medians differ by at most half and 64 MiB: history is compacted away

Latencies are judged without the time in which the kernel gave a ready process no core.
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
_TAIL_MS_MAX: Final = 100.0
_MACHINE_TIMES: Final = 4
"""A message passes four times from one process to another, or to the disk."""


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
    waiting_ms: float
    """The part in which the broker or the probe was ready, and had no core."""
    machine_ms: float
    """The time of a wake-up and a small sync at the same moment, without a broker."""

    @property
    def own_ms(self) -> float:
        """The time without that part. Both processes may wait at the same time, so it is at least 0."""
        return max(self.milliseconds - self.waiting_ms, 0.0)


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
    values, machine = [one.own_ms for one in latencies], [one.machine_ms for one in latencies]
    middle, tail = median(values), percentile(values, 0.99)
    middle_bar = _MEDIAN_MS_MAX + _MACHINE_TIMES * median(machine)
    tail_bar = _TAIL_MS_MAX + _MACHINE_TIMES * percentile(machine, 0.99)
    whole = percentile([one.milliseconds for one in latencies], 0.99)
    figure = (
        f"median {middle:.1f} ms, at most {middle_bar:.0f}; 99 % {tail:.1f} ms, at most {tail_bar:.0f}; "
        f"longest {max(values):.0f} ms of {len(values)}; with the time without a core 99 % {whole:.0f} ms; "
        f"the disk alone: median {median(machine):.1f} ms, 99 % {percentile(machine, 0.99):.1f} ms"
    )
    return Finding("latency", figure, middle <= middle_bar and tail <= tail_bar)


def _drift(samples: Sequence[Sample], latencies: Sequence[Latency]) -> Finding:
    (early, early_machine), (late, late_machine) = (_medians(quarter, latencies) for quarter in _quarters(samples))
    bar = 2 * early + 5 + _MACHINE_TIMES * max(late_machine - early_machine, 0)
    return Finding("latency drift", f"{early:.1f} -> {late:.1f} ms, at most {bar:.1f}", late <= bar)


def _medians(quarter: Sequence[Sample], latencies: Sequence[Latency]) -> tuple[float, float]:
    """Return the median latencies of a quarter: of the messages, and of the machine."""
    chosen = [one for one in latencies if quarter[0].at_s <= one.at_s <= quarter[-1].at_s]
    if not chosen:
        return float("inf"), 0.0
    return median(one.own_ms for one in chosen), median(one.machine_ms for one in chosen)
