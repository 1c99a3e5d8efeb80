"""A file that is synced while it is written.

A file of gigabytes that is synced at its end fills the queue of the disk all at once, and each sync of a broker on the
same disk waits behind it. So a thread syncs what was written while the next bytes are written.
"""

import os
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Final, final

from ambermq.protocol.amqp10.types.decode import Buffer

__all__ = ["UNSYNCED_BYTES_MAX", "SteadyFile"]

UNSYNCED_BYTES_MAX: Final = 1 << 20
"""The most bytes that one sync writes. As many are written while it lasts."""


@final
class SteadyFile:
    """A new file, or an old one that begins again empty."""

    def __init__(self, path: Path) -> None:
        """Open the file. Raises OSError."""
        self._file = path.open("wb")
        self._unsynced = 0
        self._syncs = ThreadPoolExecutor(1, "sync")
        self._last: Future[None] | None = None

    def write(self, data: Buffer) -> None:
        """Write bytes. Raises OSError, also that of a sync of bytes before."""
        for start in range(0, len(data), UNSYNCED_BYTES_MAX):
            part = memoryview(data)[start : start + UNSYNCED_BYTES_MAX]
            if self._unsynced + len(part) > UNSYNCED_BYTES_MAX:
                self._file.flush()
                self._await_sync()
                self._last = self._syncs.submit(os.fdatasync, self._file.fileno())
                self._unsynced = 0
            self._file.write(part)
            self._unsynced += len(part)

    def sync(self) -> None:
        """Sync all that was written. Raises OSError."""
        self._file.flush()
        self._await_sync()
        os.fsync(self._file.fileno())
        self._unsynced = 0

    def restart(self) -> None:
        """Remove all that was written. Raises OSError."""
        self._await_sync()
        self._file.seek(0)
        self._file.truncate()
        self._unsynced = 0

    def close(self) -> None:
        """Close the file. Raises OSError if the disk does not take what was written last."""
        # The thread has a number of the file: it is not closed before the thread has ended.
        self._syncs.shutdown()
        self._file.close()

    def _await_sync(self) -> None:
        """Wait for the sync that is under way. Raises its OSError."""
        last, self._last = self._last, None
        if last is not None:
            last.result()
