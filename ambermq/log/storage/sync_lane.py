"""The lane that syncs the log, one sync at a time: the kernel runs small syncs, a thread runs large ones.

Rule 1. The kernel runs a small sync (linux_aio.py): one context switch instead of four, 25 to 46 us of CPU instead of
117 to 127 us. If the kernel has no AIO, this lane is not used and a thread runs every sync.
Rule 2. A thread that does nothing else runs a large sync. The kernel's worker runs on the core that submitted, which is
the loop's core: with messages of 64 KiB it took a tenth of the loop's time. A thread runs on any free core.
Rule 3. An error is final: nothing is synced after it.
"""

from collections.abc import Callable
from typing import Final, Protocol

from ambermq.log.storage.group_commit import GroupCommit
from ambermq.log.storage.interface import File
from ambermq.log.storage.linux_aio import LinuxAio

__all__ = ["LARGE_SYNC_BYTES", "SyncLane", "SyncThread"]

LARGE_SYNC_BYTES: Final = 256 * 1024
"""A sync of at least this many bytes runs in the thread."""


class SyncThread(Protocol):
    """The lane whose thread runs large syncs."""

    error: Exception | None
    """The exception that ended the lane, if any."""

    def wake(self) -> None:
        """Request one more run."""


class SyncLane:
    """A lane that runs the group commit. It continues in `collect`, when the kernel or the thread has finished."""

    __slots__ = (
        "_files",
        "_has_ended",
        "_is_awake",
        "_is_busy",
        "_is_threaded",
        "_kernel",
        "_syncer",
        "_target",
        "_thread",
        "error",
    )

    def __init__(
        self, syncer: GroupCommit, kernel: LinuxAio, open_thread: Callable[[Callable[[], None]], SyncThread]
    ) -> None:
        """Create the lane. `open_thread` opens a lane with a thread for a function; the first large sync calls it."""
        self.error: Exception | None = None
        self._syncer = syncer
        self._kernel = kernel
        self._thread: SyncThread | Callable[[Callable[[], None]], SyncThread] = open_thread
        self._target = syncer.target
        self._files: list[File] = []
        """The files of the target that the kernel has not yet synced. The first one's sync is in progress."""
        self._is_awake = False
        self._is_busy = False
        """Whether a sync is in progress or has failed: none may begin."""
        self._is_threaded = False
        self._has_ended = False

    def wake(self) -> None:
        """See Lane. The next file to sync is of the last target if it has one left, else of the current target."""
        self._is_awake = True
        if self._is_busy:
            return
        self._is_busy = True
        try:
            if not self._files:
                self._is_awake = False
                target, synced_bytes = self._syncer.target, self._syncer.synced.written_bytes
                if target.written_bytes - synced_bytes >= LARGE_SYNC_BYTES:
                    self._begin_thread()
                    return
                if target.written_bytes <= synced_bytes:
                    self._is_busy = False
                    return
                self._target = target
                self._files = target.unsynced_files(synced_bytes) if target.earlier else [target.file]
            self._kernel.begin(self._files[0].fileno())
        except OSError as error:
            self.error = error

    def pause(self, seconds: float) -> bool:
        """See Lane; this lane runs no function that waits."""
        raise NotImplementedError

    def wait_for_wake(self, seconds: float) -> bool:
        """See Lane; this lane runs no function that waits."""
        raise NotImplementedError

    def notify(self) -> None:
        """See Lane; this lane runs no function that could call it."""
        raise NotImplementedError

    def collect(self) -> None:
        """Process the end of a sync, and begin the next one if needed."""
        if not self._is_busy:
            return
        try:
            if self._is_threaded:
                self._collect_thread()
            elif self._kernel.has_ended():
                self._is_busy = False
                del self._files[0]
                if not self._files:
                    self._syncer.synced = self._target
        except OSError as error:
            self.error = error
        if not self._is_busy and (self._files or self._is_awake):
            self.wake()

    def close(self) -> None:
        """Wait for the kernel's sync in progress. The owner of the thread's lane closes the thread."""
        try:
            self._kernel.close()
        except OSError as error:
            self.error = self.error or error

    def collect_thread_end(self) -> None:
        """Process the end of the thread's last sync. The thread has ended before."""
        if self._is_threaded and not callable(self._thread):
            self.error = self.error or self._thread.error

    def _collect_thread(self) -> None:
        assert not callable(self._thread)
        if self._thread.error is not None:
            self.error = self._thread.error
        elif self._has_ended:
            self._is_busy = self._is_threaded = False

    def _begin_thread(self) -> None:
        if callable(self._thread):
            self._thread = self._thread(self._sync_target)
        self._is_threaded, self._has_ended = True, False
        self._thread.wake()

    def _sync_target(self) -> None:
        self._syncer.run()
        self._has_ended = True
