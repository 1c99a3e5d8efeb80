"""The lane of syncs: the kernel or a thread runs one at a time, and an error is the last word."""

from collections.abc import Callable
from typing import Any

import pytest

from ambermq.log.storage.group_commit import GroupCommit, SyncTarget
from ambermq.log.storage.sync_lane import LARGE_SYNC_BYTES, SyncLane


class _Kernel:
    """A kernel whose syncs end when a test says so."""

    def __init__(self) -> None:
        self.begun: list[int] = []
        self.is_done = False
        self.error: OSError | None = None

    def begin(self, fd: int) -> None:
        self.begun.append(fd)

    def has_ended(self) -> bool:
        if self.error:
            raise self.error
        is_done, self.is_done = self.is_done, False
        return is_done

    def close(self) -> None:
        if self.error:
            raise self.error


class _Thread:
    """A thread that runs when a test says so."""

    def __init__(self, run: Callable[[], None]) -> None:
        self.run = run
        self.wakes = 0
        self.error: Exception | None = None

    def wake(self) -> None:
        self.wakes += 1


class _File:
    def __init__(self, fd: int) -> None:
        self._fd = fd
        self.sync_count = 0

    def fileno(self) -> int:
        return self._fd

    def datasync(self) -> None:
        self.sync_count += 1


class Driven:
    """A lane over a kernel and a thread that a test drives."""

    def __init__(self) -> None:
        self.kernel: Any = _Kernel()
        self.threads: list[_Thread] = []
        self.file: Any = _File(1)
        self.syncer = GroupCommit(0, self.file)
        self.lane = SyncLane(self.syncer, self.kernel, self._open)

    def _open(self, run: Callable[[], None]) -> _Thread:
        self.threads.append(_Thread(run))
        return self.threads[-1]

    def request(self, written_bytes: int) -> None:
        """Request a sync of all bytes so far, whose end has the same number."""
        self.syncer.target = SyncTarget(written_bytes, written_bytes, self.file)
        self.lane.wake()

    @property
    def done(self) -> int:
        return self.syncer.synced.end


@pytest.mark.parametrize(("size", "has_thread"), [(LARGE_SYNC_BYTES - 1, False), (LARGE_SYNC_BYTES, True)])
def test_a_thread_runs_large_syncs(size: int, *, has_thread: bool) -> None:
    """What counts is what is not synced yet, not what was ever written."""
    driven = Driven()
    driven.request(10)
    driven.kernel.is_done = True
    driven.lane.collect()
    assert driven.done == 10
    driven.request(10 + size)
    assert (len(driven.threads), driven.kernel.begun) == (has_thread, [1] if has_thread else [1, 1])


def test_a_wake_without_anything_to_sync_keeps_nothing_from_the_next() -> None:
    """The lane is free again at once."""
    driven = Driven()
    driven.lane.wake()
    assert driven.kernel.begun == []
    driven.request(1)
    assert driven.kernel.begun == [1]


def test_nothing_begins_while_a_thread_syncs() -> None:
    """The kernel's next sync begins when the thread has ended, not before; one thread runs all large syncs."""
    driven = Driven()
    driven.request(LARGE_SYNC_BYTES)
    (thread,) = driven.threads
    driven.request(LARGE_SYNC_BYTES + 1)
    driven.lane.collect()
    assert (driven.done, driven.kernel.begun, thread.wakes) == (0, [], 1)
    driven.syncer.target = SyncTarget(LARGE_SYNC_BYTES, LARGE_SYNC_BYTES, driven.file)
    thread.run()
    driven.request(LARGE_SYNC_BYTES + 1)
    assert (driven.done, driven.kernel.begun) == (LARGE_SYNC_BYTES, [])
    driven.lane.collect()
    assert driven.kernel.begun == [1]
    driven.kernel.is_done = True
    driven.lane.collect()
    assert driven.done == LARGE_SYNC_BYTES + 1
    driven.request(3 * LARGE_SYNC_BYTES)
    assert (len(driven.threads), thread.wakes) == (1, 2)
    driven.lane.collect()
    assert driven.done == LARGE_SYNC_BYTES + 1
    thread.run()
    driven.lane.collect()
    assert (driven.done, driven.file.sync_count) == (3 * LARGE_SYNC_BYTES, 2)


def test_a_sync_that_fails_at_its_end_is_the_last() -> None:
    """The loop finds the error; what was requested meanwhile is never begun, and nothing is durable."""
    driven = Driven()
    driven.request(1)
    driven.request(2)
    driven.kernel.error = OSError(5, "sync")
    driven.lane.collect()
    assert driven.lane.error is driven.kernel.error
    driven.kernel.error = None
    driven.request(3)
    driven.kernel.is_done = True
    for _ in range(2):
        driven.lane.wake()
    assert (driven.kernel.begun, driven.done) == ([1], 0)


def test_a_thread_that_fails_ends_the_lane() -> None:
    """Its error is the lane's, and nothing is synced after it."""
    driven = Driven()
    driven.request(LARGE_SYNC_BYTES)
    driven.threads[0].error = OSError(5, "sync")
    driven.lane.collect()
    assert driven.lane.error is driven.threads[0].error
    driven.request(LARGE_SYNC_BYTES + 1)
    driven.lane.collect()
    assert (driven.kernel.begun, driven.threads[0].wakes, driven.done) == ([], 1, 0)


def test_the_end_of_the_lane_finds_the_error_of_a_thread() -> None:
    """Without a collect in between. The first error stays."""
    driven = Driven()
    driven.request(LARGE_SYNC_BYTES)
    driven.lane.collect_thread_end()
    assert driven.lane.error is None
    first = driven.threads[0].error = OSError(5, "first")
    driven.lane.collect_thread_end()
    assert driven.lane.error is first
    driven.threads[0].error = OSError(5, "second")
    driven.lane.collect_thread_end()
    driven.kernel.error = OSError(5, "third")
    driven.lane.close()
    assert driven.lane.error is first


def test_a_last_sync_of_the_kernel_that_fails_is_an_error_too() -> None:
    """The close waits for it."""
    driven = Driven()
    driven.request(1)
    driven.kernel.error = OSError(5, "sync")
    driven.lane.close()
    assert driven.lane.error is driven.kernel.error
