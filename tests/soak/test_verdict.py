"""The verdict on a soak: it holds for a broker that stays as it is, and names what grows."""

from collections.abc import Callable
from dataclasses import replace
from typing import Final

import pytest

from tests.soak.verdict import Latency, Sample, judge

_MIB: Final = 1 << 20
_STEADY: Final = Sample(0, 100 * _MIB, 60, 5, 200 * _MIB)
_SECONDS: Final = 600


def _broken(change: Callable[[Sample], Sample], milliseconds: Callable[[int], float] = lambda _: 2.0) -> list[str]:
    """Return the names of the bars that do not hold for ten minutes of samples, changed by their time."""
    samples = [change(replace(_STEADY, at_s=float(second))) for second in range(_SECONDS)]
    latencies = [Latency(float(second), milliseconds(second), 0.0, 1.0) for second in range(_SECONDS)]
    return [finding.name for finding in judge(samples, latencies) if not finding.holds]


def test_a_steady_broker_holds() -> None:
    """Nothing grows but for the first quarter, in which caches fill."""
    assert _broken(lambda one: one) == []
    assert _broken(lambda one: replace(one, rss_bytes=50 * _MIB) if one.at_s < _SECONDS / 5 else one) == []


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("memory", lambda one: replace(one, rss_bytes=one.rss_bytes + int(one.at_s * _MIB / 10))),
        ("descriptors", lambda one: replace(one, descriptors=one.descriptors + int(one.at_s / 30))),
        ("threads", lambda one: replace(one, threads=one.threads + int(one.at_s / 60))),
        ("disk", lambda one: replace(one, disk_bytes=one.disk_bytes + int(one.at_s * _MIB))),
    ],
)
def test_what_grows_is_named(name: str, change: Callable[[Sample], Sample]) -> None:
    """A leak of 6 MiB a minute, of two descriptors a minute, of a thread a minute, of 60 MiB of disk a minute."""
    assert _broken(change) == [name]


def test_slow_messages_are_named() -> None:
    """A slow median, a slow tail, and messages that become slower."""
    assert _broken(lambda one: one, lambda _: 40.0) == ["latency"]
    assert _broken(lambda one: one, lambda second: 300.0 if second % 50 == 0 else 2.0) == ["latency"]
    assert _broken(lambda one: one, lambda second: 2.0 if second < _SECONDS / 2 else 20.0) == ["latency drift"]


@pytest.mark.parametrize("latency", [Latency(0, 60, 0, 20), Latency(0, 900, 890, 1)])
def test_a_busy_machine_is_no_fault(latency: Latency) -> None:
    """The bars move with what the disk takes without a broker, and time without a core does not count."""
    samples = [replace(_STEADY, at_s=float(second)) for second in range(_SECONDS)]
    latencies = [replace(latency, at_s=float(second)) for second in range(_SECONDS)]
    assert all(finding.holds for finding in judge(samples, latencies))


def test_a_soak_without_samples_does_not_hold() -> None:
    """A probe that never came through is no success."""
    assert [finding.holds for finding in judge([], [])] == [False]
