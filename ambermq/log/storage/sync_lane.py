"""The lane that syncs the log: small syncs are the kernel's work, large ones a thread's, one at a time.

Rule 1. A small sync is told to the kernel (kernel_sync.py): one context switch instead of four, 25 to 46 us of CPU
instead of 117 to 127. Where the kernel offers that not, there is no lane like this, and a thread does them all.
Rule 2. A large one goes to a thread that does nothing else. The kernel's worker runs on the core that has asked, which
is the loop's: at 64 KiB a message that took a tenth of its turn. A thread goes where there is room.
Rule 3. An error is final: nothing is synced after it.
"""

from collections.abc import Callable
from typing import Final, Protocol

from ambermq.log.storage.group_commit import GroupCommit
from ambermq.log.storage.interface import File
from ambermq.log.storage.linux_aio import LinuxAio

__all__ = ["LARGE_SYNC_BYTES", "SyncLane", "SyncThread"]

LARGE_SYNC_BYTES: Final = 256 * 1024
"""A sync of so many bytes goes to the thread."""


class SyncThread(Protocol):
    """The thread for large syncs: a lane of its own."""

    error: Exception | None
    """What ended it, if anything did."""

    def wake(self) -> None:
        """Ask for one more run."""


class SyncLane:
    """Runs a syncer; goes on in `collect`, after the kernel or the thread has told."""

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
        """Wait for the first wake. `open_thread` opens the thread for a function, at the first large sync."""
        self.error: Exception | None = None
        self._syncer = syncer
        self._kernel = kernel
        self._thread: SyncThread | Callable[[Callable[[], None]], SyncThread] = open_thread
        self._target = syncer.target
        self._files: list[File] = []
        """What the kernel has still to sync for that, the file under way first."""
        self._is_awake = False
        self._is_busy = False
        """A sync is under way, or has failed: none may begin."""
        self._is_threaded = False
        self._has_ended = False

    def wake(self) -> None:
        """See Lane."""
        self._is_awake = True
        if not self._is_busy:
            self._begin()

    def pause(self, seconds: float) -> bool:
        """See Lane; nothing waits here."""
        raise NotImplementedError

    def rest(self, seconds: float) -> bool:
        """See Lane; nothing waits here."""
        raise NotImplementedError

    def tell(self) -> None:
        """See Lane; no function runs here."""
        raise NotImplementedError

    def collect(self) -> None:
        """Take the end of a sync, and begin the next where one is wanted."""
        if not self._is_busy:
            return
        try:
            if self._is_threaded:
                self._take_thread()
            elif self._kernel.has_ended():
                self._is_busy = False
                del self._files[0]
                if not self._files:
                    self._syncer.synced = self._target
        except OSError as error:
            self.error = error
        if not self._is_busy and (self._files or self._is_awake):
            self._begin()

    def close(self) -> None:
        """Wait for the kernel's sync under way; the thread is closed by whoever opened it."""
        try:
            self._kernel.close()
        except OSError as error:
            self.error = self.error or error

    def closed(self) -> None:
        """Take the end of the thread's last sync, once the thread has ended."""
        if self._is_threaded and not callable(self._thread):
            self.error = self.error or self._thread.error

    def _take_thread(self) -> None:
        assert not callable(self._thread)
        if self._thread.error is not None:
            self.error = self._thread.error
        elif self._has_ended:
            self._is_busy = self._is_threaded = False

    def _begin(self) -> None:
        """Begin to sync the next file, the first of the present target where none is left of the last one."""
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

    def _begin_thread(self) -> None:
        if callable(self._thread):
            self._thread = self._thread(self._run)
        self._is_threaded, self._has_ended = True, False
        self._thread.wake()

    def _run(self) -> None:
        self._syncer.run()
        self._has_ended = True
