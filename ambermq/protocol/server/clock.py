"""The clock of the server: timers run by elapsed time, and events are stamped with the time of day.

    now_us          the time of day at the start and the time elapsed since, suspensions included; no step changes it
    correction_us   the difference between the times of events and now_us

Rule 1. The monotonic clock stands still while the machine is suspended, and the boot clock does not. So `epoch_us`
        grows by each suspension.
Rule 2. The times of events follow the time of day by at most 500 ppm. A larger difference than 5 s is a step. Its new
        time is taken at once, forward or back, for times of events only.
Rule 3. Nothing else of the server reads the time of day. A test gives the clock its three readings.
Rule 4. The machine may run others between two readings. So the first ones are taken several times, and those count that
        lie closest together: otherwise the pause would be a jump of `now_us` at the first `follow`.
"""

import time
from collections.abc import Callable
from typing import Final, final

from ambermq.engine.loop.clock_steps import CLOCK_STEP_US

__all__ = ["Clock"]

_SLEW_PPM: Final = 500
_READINGS: Final = 8


def _boot_ns() -> int:
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


@final
class Clock:
    """The readings of the machine's clocks, and the difference between them."""

    __slots__ = ("_boot_ns", "_polled_us", "_start_us", "_wall_ns", "correction_us", "epoch_us", "monotonic_ns")

    def __init__(
        self,
        *,
        monotonic_ns: Callable[[], int] = time.monotonic_ns,
        boot_ns: Callable[[], int] = _boot_ns,
        wall_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        """Begin with the time of day."""
        self.monotonic_ns = monotonic_ns
        """The monotonic clock."""
        self._boot_ns = boot_ns
        self._wall_ns = wall_ns
        _, boot_us, wall_us, monotonic_us = min([self._readings() for _ in range(_READINGS)])
        self._polled_us = boot_us
        self._start_us = wall_us - boot_us
        self.epoch_us = wall_us - monotonic_us
        """The difference between `now_us` and the monotonic clock."""
        self.correction_us = 0
        """The difference between the times of events and `now_us`."""

    def _readings(self) -> tuple[int, int, int, int]:
        """Return the time that the readings took, and the boot clock, the time of day and the monotonic clock."""
        boot_us = self._boot_ns() // 1000
        wall_us, monotonic_us = self._wall_ns() // 1000, self.monotonic_ns() // 1000
        return self._boot_ns() // 1000 - boot_us, boot_us, wall_us, monotonic_us

    def now_us(self) -> int:
        """Return the time at the start and the time elapsed since, in microseconds. No step changes it."""
        return self.monotonic_ns() // 1000 + self.epoch_us

    def follow(self) -> tuple[int, int] | None:
        """Follow the time of day; return the times before and after a step, or None. The server calls it each second.

        An event that comes after a step and before the next call has a time of before the step.
        """
        boot_us = self._boot_ns() // 1000
        self.epoch_us = max(self.epoch_us, self._start_us + boot_us - self.monotonic_ns() // 1000)
        old_us, new_us = self.now_us() + self.correction_us, self._wall_ns() // 1000
        slew_us_max = (boot_us - self._polled_us) * _SLEW_PPM // 1_000_000
        self._polled_us = boot_us
        ahead_us = new_us - old_us
        if abs(ahead_us) > CLOCK_STEP_US:
            self.correction_us += ahead_us
            return old_us, new_us
        self.correction_us += max(-slew_us_max, min(slew_us_max, ahead_us))
        return None
