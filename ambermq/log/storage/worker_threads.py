"""The worker threads of a log, and their replacement for tests that run them step by step.

A lane runs one function each time it is woken. All wakes that come during a run start one more run, so many requests
for a sync cost one sync. After each run the lane notifies the loop through one eventfd.

Rule 1. A function that raised is never run again, because a failed sync must not be retried. The loop reads the error
from the lane.
Rule 2. A lane and the loop share only objects that are replaced as a whole or appended to at one end.

The kernel does the syncs if it can (sync_lane.py). Otherwise a thread does nothing but wait and fdatasync: a thread
that also runs other Python code waits 5 ms at a time for the GIL.
"""

import os
import select
import threading
from collections.abc import Callable
from functools import partial
from typing import Protocol

from ambermq.log.storage.group_commit import GroupCommit
from ambermq.log.storage.linux_aio import LinuxAio
from ambermq.log.storage.sync_lane import SyncLane

__all__ = ["InlineLane", "InlineWorkers", "Lane", "ThreadLane", "ThreadWorkers", "Workers"]


class Lane(Protocol):
    """One function that runs when it is woken."""

    error: Exception | None
    """The exception that ended the lane, if any."""

    def wake(self) -> None:
        """Request one more run, which begins after this call."""

    def pause(self, seconds: float) -> bool:
        """Wait inside a run; return true, and at once, if the lane is closing."""

    def wait_for_wake(self, seconds: float) -> bool:
        """Wait inside a run; return true, and at once, if the lane was woken or is closing."""

    def notify(self) -> None:
        """Notify the loop inside a long run, before its end."""


class Workers(Protocol):
    """The lanes of one log."""

    def lane(self, name: str, run: Callable[[], None], *, period_s: float | None = None) -> Lane:
        """Open a lane. With `period_s` it also runs after that time without a wake."""

    def sync_lane(self, syncer: GroupCommit) -> Lane:
        """Open the lane that runs the group commit."""

    def fileno(self) -> int:
        """Return a descriptor that is readable when a run has ended since the last `collect`."""

    def collect(self) -> None:
        """Make the descriptor unreadable; inline lanes run now."""

    def close(self) -> None:
        """End all lanes, each after its run, and close the descriptor."""


class ThreadLane:
    """A lane that has its own thread."""

    __slots__ = ("_closing", "_done_fd", "_period_ms", "_poll", "_run", "_thread", "_wake_fd", "error")

    def __init__(self, name: str, run: Callable[[], None], *, done_fd: int, period_s: float | None) -> None:
        """Start the thread; after each run it adds one to the eventfd `done_fd`."""
        self.error: Exception | None = None
        self._run = run
        self._done_fd = done_fd
        self._wake_fd = os.eventfd(0, os.EFD_CLOEXEC)
        self._closing = threading.Event()
        self._period_ms = None if period_s is None else int(1000 * period_s)
        self._poll = select.poll()
        self._poll.register(self._wake_fd, select.POLLIN)
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._thread.start()

    def wake(self) -> None:
        """See Lane."""
        os.eventfd_write(self._wake_fd, 1)

    def pause(self, seconds: float) -> bool:
        """See Lane."""
        return self._closing.wait(seconds)

    def wait_for_wake(self, seconds: float) -> bool:
        """See Lane."""
        return bool(self._poll.poll(1000 * seconds))

    def notify(self) -> None:
        """See Lane."""
        os.eventfd_write(self._done_fd, 1)

    def close(self) -> None:
        """End the thread after its run and wait for it."""
        self._closing.set()
        self.wake()
        self._thread.join()
        os.close(self._wake_fd)

    def _work(self) -> None:
        while True:
            if self._period_ms is None or self._poll.poll(self._period_ms):
                os.eventfd_read(self._wake_fd)
            if self._closing.is_set():
                return
            try:
                self._run()
            except Exception as error:  # noqa: BLE001 - the loop must get every exception
                self.error = error
                return
            finally:
                os.eventfd_write(self._done_fd, 1)


class ThreadWorkers:
    """The lanes of a running broker: threads, except that the kernel runs the sync lane if it can."""

    __slots__ = ("_fd", "_has_kernel_sync", "_lanes", "_sync_lane")

    def __init__(self, *, has_kernel_sync: bool = True) -> None:
        """Make the descriptor; lanes come later."""
        self._fd = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._lanes: list[ThreadLane] = []
        self._has_kernel_sync = has_kernel_sync
        self._sync_lane: SyncLane | None = None

    def lane(self, name: str, run: Callable[[], None], *, period_s: float | None = None) -> ThreadLane:
        """See Workers."""
        lane = ThreadLane(name, run, done_fd=self._fd, period_s=period_s)
        self._lanes.append(lane)
        return lane

    def sync_lane(self, syncer: GroupCommit) -> Lane:
        """See Workers."""
        if self._has_kernel_sync:
            try:
                self._sync_lane = SyncLane(syncer, LinuxAio(self._fd), partial(self.lane, "ambermq-sync"))
            except OSError:
                self._has_kernel_sync = False
            else:
                return self._sync_lane
        return self.lane("ambermq-sync", syncer.run)

    def fileno(self) -> int:
        """See Workers."""
        return self._fd

    def collect(self) -> None:
        """See Workers."""
        try:  # noqa: SIM105 - called once a tick; `suppress` costs three more calls
            os.eventfd_read(self._fd)
        except BlockingIOError:
            pass
        if self._sync_lane is not None:
            self._sync_lane.collect()

    def close(self) -> None:
        """See Workers."""
        if self._sync_lane is not None:
            self._sync_lane.close()
        for lane in self._lanes:
            lane.close()
        self._lanes.clear()
        if self._sync_lane is not None:
            self._sync_lane.collect_thread_end()
            self._sync_lane = None
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


class InlineLane:
    """A lane without a thread: it runs when `run` is called."""

    __slots__ = ("_done_fd", "_is_awake", "_run", "error")

    def __init__(self, run: Callable[[], None], *, done_fd: int) -> None:
        """Wait for the first wake."""
        self.error: Exception | None = None
        self._run = run
        self._done_fd = done_fd
        self._is_awake = False

    def wake(self) -> None:
        """See Lane."""
        self._is_awake = True
        os.eventfd_write(self._done_fd, 1)

    def pause(self, seconds: float) -> bool:  # noqa: ARG002 - no time passes here
        """See Lane."""
        return False

    def wait_for_wake(self, seconds: float) -> bool:  # noqa: ARG002 - as above
        """See Lane."""
        return self._is_awake

    def notify(self) -> None:
        """See Lane; the caller of `run` needs no notification."""

    def run(self) -> bool:
        """Run once if the lane was woken; return whether it ran."""
        if not self._is_awake or self.error:
            return False
        self._is_awake = False
        try:
            self._run()
        except Exception as error:  # noqa: BLE001 - as in ThreadLane
            self.error = error
        return True


class InlineWorkers:
    """Lanes that run in `collect`, in the order they were opened, without threads or time."""

    __slots__ = ("_fd", "_lanes")

    def __init__(self) -> None:
        """Make the descriptor; lanes come later."""
        self._fd = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._lanes: list[InlineLane] = []

    def __del__(self) -> None:
        # A test that simulates a crash does not call `close`.
        self.close()

    def lane(self, name: str, run: Callable[[], None], *, period_s: float | None = None) -> InlineLane:  # noqa: ARG002
        """See Workers; `period_s` has no effect."""
        lane = InlineLane(run, done_fd=self._fd)
        self._lanes.append(lane)
        return lane

    def sync_lane(self, syncer: GroupCommit) -> InlineLane:
        """See Workers."""
        return self.lane("ambermq-sync", syncer.run)

    def fileno(self) -> int:
        """See Workers."""
        return self._fd

    def collect(self) -> None:
        """See Workers."""
        while sum(lane.run() for lane in self._lanes):
            pass
        try:
            os.eventfd_read(self._fd)
        except BlockingIOError:
            return

    def close(self) -> None:
        """See Workers."""
        self._lanes.clear()
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
