"""Lanes run when they were woken, as threads or by hand."""

import os
import select
import threading
import time
from pathlib import Path
from unittest.mock import Mock

import pytest

from ambermq.log.storage.disk import DiskStorage
from ambermq.log.storage.group_commit import GroupCommit
from ambermq.log.storage.linux_aio import LinuxAio
from ambermq.log.storage.sync_lane import SyncLane
from ambermq.log.storage.worker_threads import InlineWorkers, ThreadWorkers

WAIT_S = 60


def _await_signal(workers: ThreadWorkers) -> None:
    readable, _, _ = select.select([workers.fileno()], [], [], WAIT_S)
    assert readable


def test_many_wakes_ride_one_run() -> None:
    """Wakes that come during a run are answered by one more run, which begins after them."""
    workers = ThreadWorkers()
    began, may_end, runs = threading.Semaphore(0), threading.Semaphore(0), []

    def run() -> None:
        runs.append(1)
        began.release()
        may_end.acquire(timeout=WAIT_S)

    lane = workers.lane("test", run)
    lane.wake()
    assert began.acquire(timeout=WAIT_S)
    for _ in range(5):
        lane.wake()
    may_end.release()
    assert began.acquire(timeout=WAIT_S)
    may_end.release(5)
    workers.close()
    assert len(runs) == 2


def test_the_loop_is_told_after_each_run() -> None:
    """The descriptor is readable after a run and, once collected, not before the next one."""
    workers = ThreadWorkers()
    lane = workers.lane("test", lambda: None)
    for _ in range(3):
        workers.collect()
        assert select.select([workers.fileno()], [], [], 0)[0] == []
        lane.wake()
        _await_signal(workers)
    workers.close()


@pytest.mark.parametrize("kind", [ThreadWorkers, InlineWorkers])
def test_what_raised_is_never_run_again(kind: type[ThreadWorkers | InlineWorkers]) -> None:
    """The first error stays, the loop is told, and further wakes do nothing."""
    workers = kind()
    runs = []

    def run() -> None:
        runs.append(1)
        raise OSError(5, "first")

    lane = workers.lane("test", run)
    lane.wake()
    assert select.select([workers.fileno()], [], [], WAIT_S)[0]
    workers.collect()
    lane.wake()
    workers.collect()
    workers.close()
    assert len(runs) == 1
    assert str(lane.error) == "[Errno 5] first"


def test_a_lane_with_a_period_runs_by_itself() -> None:
    """Without a wake it runs when its period is over."""
    workers = ThreadWorkers()
    workers.lane("test", lambda: None, period_s=0.001)
    _await_signal(workers)
    workers.close()


def test_a_pause_ends_when_the_lane_is_closed() -> None:
    """A pause within a run returns at once when the lane closes."""
    workers = ThreadWorkers()
    told = []
    began = threading.Event()

    def run() -> None:
        began.set()
        told.append(lane.pause(3600))

    lane = workers.lane("test", run)
    lane.wake()
    assert began.wait(WAIT_S)
    workers.close()
    assert told == [True]


def test_a_rest_ends_when_the_lane_is_woken_and_it_runs_again() -> None:
    """A wait within a run returns at once when the lane is woken or closes."""
    workers = ThreadWorkers()
    told: list[bool] = []
    began = threading.Semaphore(0)

    def run() -> None:
        told.append(lane.wait_for_wake(0))
        began.release()
        told.append(lane.wait_for_wake(3600))

    lane = workers.lane("test", run)
    lane.wake()
    for _ in range(2):
        assert began.acquire(timeout=WAIT_S)
        lane.wake()
    assert began.acquire(timeout=WAIT_S)
    workers.close()
    assert told[:4] == [False, True, False, True]
    assert set(told[1::2]) == {True}


def test_inline_lanes_run_when_collected() -> None:
    """Nothing runs before `collect`; then each lane runs, in the order they were opened, until none is awake."""
    workers = InlineWorkers()
    order = []
    first = workers.lane("first", lambda: order.append("first"))
    second = workers.lane("second", lambda: order.append("second") or (len(order) < 4 and first.wake()))
    workers.collect()
    assert order == []
    second.wake()
    first.wake()
    assert order == []
    assert select.select([workers.fileno()], [], [], 0)[0]
    workers.collect()
    assert order == ["first", "second", "first"]
    assert second.error is None
    workers.close()


def test_closing_gives_the_descriptor_back() -> None:
    """After `close` the descriptor is no more, and closing twice is no harm."""
    for workers in (ThreadWorkers(), InlineWorkers()):
        fd = workers.fileno()
        workers.close()
        workers.close()
        with pytest.raises(OSError, match="Bad file"):
            os.fstat(fd)


def test_a_lane_with_a_long_period_runs_once_for_a_wake() -> None:
    """Neither before the wake nor again after it."""
    workers = ThreadWorkers()
    runs: list[None] = []
    lane = workers.lane("periodic", lambda: runs.append(None), period_s=60)
    time.sleep(0.05)
    assert not runs
    lane.wake()
    assert select.select([workers.fileno()], [], [], 10)[0]
    time.sleep(0.05)
    assert len(runs) == 1
    workers.close()


def test_a_run_can_report_before_its_end() -> None:
    """The descriptor is readable at once."""
    workers = ThreadWorkers()
    told, go_on = threading.Event(), threading.Event()

    def run() -> None:
        lane.notify()
        told.set()
        go_on.wait(10)

    lane = workers.lane("reporting", run)
    lane.wake()
    assert told.wait(10)
    assert select.select([workers.fileno()], [], [], 0)[0]
    go_on.set()
    workers.close()


def test_a_close_waits_for_the_sync_of_the_kernel() -> None:
    """Its file is closed afterwards, and its number may be another file's."""
    workers = ThreadWorkers()
    order = Mock()
    workers._sync_lane = order
    workers.close()
    assert [call[0] for call in order.method_calls] == ["close", "collect_thread_end"]


def test_lanes_are_closed_once() -> None:
    """A second close finds none."""
    workers = ThreadWorkers()
    workers.lane("one", lambda: None)
    workers.close()
    workers.close()


def test_the_kernel_syncs_unless_told_otherwise(tmp_path: Path) -> None:
    """A sync by the kernel takes a quarter of the time of one by a thread."""
    workers = ThreadWorkers()
    try:
        LinuxAio(workers.fileno()).close()
    except OSError as error:
        pytest.skip(f"this kernel offers no AIO: {error}")
    file = DiskStorage().open(str(tmp_path / "a"), create=True)
    assert isinstance(workers.sync_lane(GroupCommit(0, file)), SyncLane)
    workers.close()
    file.close()
