"""The clock of the server: elapsed time for timers, the time of day for events, and steps told."""

import pytest

from ambermq.protocol.server.clock import Clock

_SECOND = 1_000_000
_DAY_US = 86_400 * _SECOND


class Machine:
    """The three clocks of a machine, in microseconds."""

    def __init__(self) -> None:
        self.monotonic_us = 7 * _SECOND
        self.boot_us = 9 * _SECOND
        self.wall_us = 1_000 * _DAY_US
        self.clock = Clock(
            monotonic_ns=lambda: self.monotonic_us * 1000,
            boot_ns=lambda: self.boot_us * 1000,
            wall_ns=lambda: self.wall_us * 1000,
        )

    def run(self, us: int, *, wall_us: int | None = None) -> tuple[int, int] | None:
        """Return the step that the clock finds after some elapsed time."""
        self.monotonic_us += us
        self.boot_us += us
        self.wall_us += us if wall_us is None else wall_us
        return self.clock.follow()

    @property
    def event_us(self) -> int:
        """The time that an event gets now."""
        return self.clock.now_us() + self.clock.correction_us


def test_a_clock_that_goes_right_is_followed_exactly() -> None:
    """Nothing to correct."""
    machine = Machine()
    for _ in range(100):
        assert machine.run(_SECOND) is None
    assert machine.event_us == machine.clock.now_us() == machine.wall_us


@pytest.mark.parametrize("ahead_us", [-4_900_000, -1000, 1000, 4_900_000])
def test_a_small_difference_is_followed_by_at_most_500_ppm(ahead_us: int) -> None:
    """Neither the times of events nor those of timers jump or go back."""
    machine = Machine()
    machine.wall_us += ahead_us
    for _ in range(10):
        before = machine.event_us
        assert machine.run(_SECOND) is None
        assert abs(machine.event_us - before - _SECOND) <= 500
    for _ in range(10_000):
        assert machine.run(_SECOND) is None
    assert machine.event_us == machine.wall_us


@pytest.mark.parametrize("step_us", [-85 * 365 * _DAY_US // 100, -6 * _SECOND, 6 * _SECOND, 85 * 365 * _DAY_US])
def test_a_step_is_told_once_and_moves_no_timer(step_us: int) -> None:
    """Back or forward, the new time of day is that of events at once; elapsed time goes on."""
    machine = Machine()
    now_us = machine.clock.now_us()
    machine.wall_us += step_us
    step = machine.run(_SECOND)
    assert step == (machine.wall_us - step_us, machine.wall_us)
    assert machine.event_us == machine.wall_us
    assert machine.clock.now_us() == now_us + _SECOND
    assert machine.run(_SECOND) is None


def test_a_suspended_machine_is_no_step() -> None:
    """The boot clock goes on, so time has elapsed, for timers too."""
    machine = Machine()
    now_us = machine.clock.now_us()
    machine.boot_us += _DAY_US
    machine.wall_us += _DAY_US
    assert machine.run(_SECOND) is None
    assert machine.clock.now_us() == now_us + _DAY_US + _SECOND
    assert machine.event_us == machine.wall_us


@pytest.mark.parametrize("paused_at", [1, 2])
def test_a_pause_between_the_first_readings_moves_no_timer(paused_at: int) -> None:
    """The machine runs others meanwhile; the clock does not jump when it is followed for the first time."""
    elapsed_us, readings = 0, 0

    def reading(start_us: int) -> int:
        nonlocal elapsed_us, readings
        elapsed_us += 50_000 if readings == paused_at else 1
        readings += 1
        return (start_us + elapsed_us) * 1000

    clock = Clock(
        monotonic_ns=lambda: reading(7 * _SECOND),
        boot_ns=lambda: reading(9 * _SECOND),
        wall_ns=lambda: reading(_DAY_US),
    )
    before_us = clock.now_us() - elapsed_us
    clock.follow()
    assert abs(clock.now_us() - elapsed_us - before_us) < 10
