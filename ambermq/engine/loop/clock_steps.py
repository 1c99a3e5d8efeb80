"""The steps of the clock that a loop has logged, and the one that its next tick logs."""

from typing import Final, final

from ambermq.engine.events import ClockStepped

__all__ = ["CLOCK_STEP_US", "ClockSteps", "is_step_at_start"]

CLOCK_STEP_US: Final = 5_000_000
"""A difference from the time of day above this is a step. A smaller one is followed slowly."""
_PAUSE_US_MAX: Final = 30 * 86_400_000_000
"""A start so long after the last event counts as a step too: the clock may be wrong."""


def is_step_at_start(last_us: int, now_us: int) -> bool:
    """Return whether a start at this time, after a last event at that time, is a step of the clock."""
    return bool(last_us) and not -CLOCK_STEP_US <= now_us - last_us <= _PAUSE_US_MAX


@final
class ClockSteps:
    """The steps of the clock since the start, that at the start included."""

    __slots__ = ("count", "due", "newest")

    def __init__(self) -> None:
        self.newest: ClockStepped | None = None
        """The newest one that is logged."""
        self.count = 0
        """The number of those that are logged."""
        self.due: tuple[int, int] | None = None
        """The time before a step and the time after it, until a tick logs it."""

    def add(self, old_us: int, new_us: int) -> None:
        """Store a step for the next tick; with one that waits it is one step."""
        self.due = self.due[0] if self.due else old_us, new_us

    def take(self) -> tuple[int, int]:
        """Return the step that is due; it is not due any more."""
        assert self.due is not None
        due, self.due = self.due, None
        return due

    def logged(self, step: ClockStepped) -> None:
        """Count a step that was logged."""
        self.newest, self.count = step, self.count + 1
