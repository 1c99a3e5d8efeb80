"""Steps of the clock in a log: they are events, times may go back after them, and no timer runs by them."""

from dataclasses import replace

import pytest

from ambermq.engine.compaction.plan import History, base_for
from ambermq.engine.config import EngineConfig
from ambermq.engine.loop.clock_steps import CLOCK_STEP_US
from ambermq.engine.loop.durable_loop import DurableLoop
from ambermq.engine.loop.recovery import fold_log, recover
from ambermq.engine.records.reader import events_of
from ambermq.engine.snapshots.retention import prunable
from ambermq.log.manifest.manifest import ClockStep, Snapshot, create, load, note_clock_step, store
from ambermq.log.recovery.recovery import Recovery
from ambermq.log.storage.worker_threads import InlineWorkers
from tests.engine.rig import COLD, Rig
from tests.log.lives import DIRECTORY

_SECOND = 1_000_000
_YEAR_US = 365 * 86_400 * _SECOND


def events(rig: Rig) -> list[tuple[str, int]]:
    """Return name and time of every event on the disk, after a kill."""

    rig.kill()
    recovery = Recovery.open(rig.storage, DIRECTORY, COLD, rig.now_us)
    found = [(type(event).__name__, event.time_us) for batch in recovery.batches() for event in events_of(batch)]
    recovery.close()
    return found


def step(rig: Rig, us: int) -> None:
    """Step the clock as the server does."""
    old_us = rig.now_us + rig.loop.correction_us
    rig.loop.correct_clock(rig.loop.correction_us + us, (old_us, old_us + us))


@pytest.mark.parametrize("us", [-500_000, -_YEAR_US, 85 * _YEAR_US])
def test_a_step_is_an_event_and_later_events_have_the_new_time(us: int) -> None:
    """Forward and back; the timers of the loop do not notice."""
    rig = Rig()
    rig.now_us = 100 * _YEAR_US
    rig.producer("a")
    due_us = rig.loop.schedule.next_us
    step(rig, us)
    rig.producer("b")
    assert rig.loop.schedule.next_us <= max(due_us, rig.now_us + 10 * _SECOND)
    assert rig.loop.state.time_us == rig.now_us + us
    found = events(rig)
    at = [name for name, _ in found].index("ClockStepped")
    assert [time_us for _, time_us in found[at:]] == [rig.now_us + us] * (len(found) - at)
    assert found[at - 1][1] == rig.now_us


def test_a_jump_forward_and_back_freezes_nothing() -> None:
    """After +85 years and back events were stamped 2111 for ever."""
    rig = Rig()
    rig.now_us = 100 * _YEAR_US
    rig.producer("a")
    step(rig, 85 * _YEAR_US)
    rig.producer("b")
    step(rig, -85 * _YEAR_US)
    rig.producer("c")
    assert rig.loop.state.time_us == rig.now_us
    assert rig.loop.clock_steps.count == 2
    assert rig.loop.log.manifest.clock_step is not None
    assert rig.loop.log.manifest.clock_step.time_us == rig.now_us


def test_steps_between_two_ticks_are_one_event() -> None:
    """From the time before the first to the time after the last."""
    rig = Rig()
    rig.now_us = 100 * _YEAR_US
    rig.producer("a")
    for us in (_YEAR_US, _YEAR_US, -_YEAR_US):
        step(rig, us)
    rig.producer("b")
    told = rig.loop.clock_steps.newest
    assert told is not None
    assert (told.old_us, told.time_us) == (rig.now_us, rig.now_us + _YEAR_US)
    assert rig.loop.clock_steps.count == 1


def test_a_step_leaves_no_selector_waiting_for_the_write_that_it_makes() -> None:
    """Messages of the batch before it can be read after it, so their queue is visited again."""
    rig = Rig()
    rig.consumer(selector="x = 1", credit=1)
    queue = rig.queue().id
    rig.loop.log.draft.add(1, timestamp_us=rig.now_us, body=b"")
    rig.loop.log.draft.end_command()
    rig.loop.demand.parked[queue] = None
    step(rig, _YEAR_US)
    rig.loop._step_clock(rig.now_us)
    assert (rig.loop.demand.parked, rig.loop.demand.dirty) == ({}, {queue: None})


def test_a_step_back_counts_from_the_newest_event() -> None:
    """The time before it is never older than the events before it."""
    rig = Rig()
    rig.now_us = 100 * _YEAR_US
    rig.producer("a")
    rig.now_us -= 1000
    step(rig, -_YEAR_US)
    rig.producer("b")
    assert rig.loop.clock_steps.newest is not None
    assert rig.loop.clock_steps.newest.old_us == 100 * _YEAR_US


def test_a_directory_frozen_in_the_future_is_freed_by_its_next_start() -> None:
    """As 0.1.0 left it: the last event is of 2111, the clock is right again."""
    rig = Rig()
    rig.loop.correction_us = 85 * _YEAR_US
    rig.producer("a")
    again = rig.next_life()
    assert again.loop.clock_steps.newest is not None
    assert again.loop.state.time_us == again.now_us
    assert again.loop.clock_steps.newest.old_us > 85 * _YEAR_US
    third = again.next_life()
    assert third.loop.clock_steps.newest is None


@pytest.mark.parametrize("back_us", [1, 4_000_000, CLOCK_STEP_US])
def test_a_start_a_little_before_the_last_event_is_no_step_and_times_never_fall(back_us: int) -> None:
    """Events keep the time of the last one until the clock has passed it, those of the start itself included."""
    rig = Rig()
    began_us = rig.now_us
    rig.now_us += back_us
    last_us = rig.now_us
    producer = rig.producer("a")
    rig.do(rig.publish(producer, b"before"))
    again = rig.next_life()
    assert (again.now_us, again.loop.clock_steps.newest, again.loop.log.manifest.clock_step) == (began_us, None, None)
    again.do(again.publish(again.producer("b"), b"during"))
    assert again.loop.state.time_us == last_us
    again.now_us += back_us + 1
    again.producer("c")
    assert again.loop.state.time_us == last_us + 1
    found = events(again)
    times = [time_us for _, time_us in found]
    assert times == sorted(times)
    assert times.count(last_us) > 4
    assert "ClockStepped" not in [name for name, _ in found]


def test_a_start_further_before_the_last_event_is_a_step() -> None:
    """By one microsecond; only after such an event a time is lower than the one before it."""
    rig = Rig()
    rig.now_us += CLOCK_STEP_US + 1
    rig.producer("a")
    again = rig.next_life()
    again.producer("b")
    found = events(again)
    at = [name for name, _ in found].index("ClockStepped")
    falls = [index for index in range(1, len(found)) if found[index][1] < found[index - 1][1]]
    assert falls == [at]


def test_a_repair_is_logged_without_a_fall_of_times() -> None:
    """By a start a little before the last event, as any other event."""
    rig = Rig()
    rig.now_us += CLOCK_STEP_US
    rig.producer("a")
    end = rig.loop.log.log_end
    rig.kill()
    recovery = Recovery.open(rig.storage, DIRECTORY, COLD, 1_000_000)
    state = fold_log(recovery)
    loop = DurableLoop(recovery.log(InlineWorkers()), state, EngineConfig())
    loop.start(1_000_000, [(end, end + 10)])
    assert loop.state.time_us == rig.now_us


@pytest.mark.parametrize(("later_us", "is_step"), [(29 * 86_400 * _SECOND, False), (31 * 86_400 * _SECOND, True)])
def test_a_start_long_after_the_last_event_is_told(later_us: int, is_step: bool) -> None:
    """The clock of a machine without a battery may be anywhere."""
    rig = Rig()
    rig.kill()

    now_us = rig.now_us + later_us
    recovery = Recovery.open(rig.storage, DIRECTORY, COLD, now_us)
    state = fold_log(recovery)
    loop = DurableLoop(recovery.log(InlineWorkers()), state, EngineConfig())
    loop.start(now_us)
    assert (loop.clock_steps.newest is not None) == is_step


def test_a_step_that_a_kill_kept_from_the_manifest_is_noted_by_the_next_start(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Otherwise all that is older would count as old by a wrong clock, and be deleted."""
    rig = Rig()
    rig.producer("a")
    step(rig, _YEAR_US)
    rig.producer("b")
    rig.kill()
    noted = load(rig.storage, DIRECTORY)
    assert noted is not None
    assert noted.clock_step is not None
    store(rig.storage, DIRECTORY, replace(noted, clock_step=None))
    monkeypatch.setattr("ambermq.log.recovery.recovery.ThreadWorkers", InlineWorkers)
    loop = recover(Recovery.open(rig.storage, DIRECTORY, COLD, rig.now_us), EngineConfig(), rig.now_us + _YEAR_US)
    loop.log.close()
    assert loop.log.manifest.clock_step == noted.clock_step


def _snapshot(file_id: int, end: int, time_us: int) -> Snapshot:
    return Snapshot(file_id, f"s{file_id}", end, time_us, time_us, 100, is_automatic=True)


def test_an_age_counts_from_the_newest_step() -> None:
    """A jump forward makes nothing old at once, and times of a wrong future age too."""

    day = 86_400 * _SECOND
    now_us = 200 * _YEAR_US
    snapshots = (_snapshot(1, 10, 100 * _YEAR_US), _snapshot(2, 20, 300 * _YEAR_US), _snapshot(3, 40, now_us))
    manifest = replace(create(bytes(16)), snapshots=snapshots)
    for age, base, pruned in ((2 * day, None, frozenset[int]()), (day // 2, 2, frozenset({1, 2}))):
        stepped = note_clock_step(manifest, offset=30, time_us=now_us - day)
        found = base_for(stepped, History(age), now_us=now_us)
        assert (found and found.file_id) == base
        told = prunable(stepped, now_us=now_us, keep=9, age_s_max=age // _SECOND, snapshots_max=9)
        assert told == pruned or told | {1} == pruned
    assert stepped.clock_step == ClockStep(30, now_us - day)
