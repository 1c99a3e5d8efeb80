"""Whether the lock file of a data directory is still the one that this process has locked.

Rule: a thread looks at it, since a slow disk would hold the event loop. A caller waits for it a short time at most, and
      takes the result of the look before then.
"""

import os
import threading
from typing import Final, final

from ambermq.log.manifest.writer_lock import lock_path

__all__ = ["LockWatch"]

_WAIT_SECONDS: Final = 0.02


@final
class LockWatch:
    """The lock file of one directory; one thread calls."""

    __slots__ = ("_directory", "_identity", "_is_fenced", "_thread")

    def __init__(self, directory: str) -> None:
        """Watch the lock file of a directory; the present one is that of this process."""
        self._directory = directory
        self._identity = _identity_of(directory)
        self._is_fenced = False
        self._thread: threading.Thread | None = None

    def is_fenced(self) -> bool:
        """Return whether the lock file is another one, or is gone: another broker may write to the directory."""
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self._look, name="lock watch", daemon=True)
            self._thread.start()
        self._thread.join(_WAIT_SECONDS)
        return self._is_fenced

    def _look(self) -> None:
        self._is_fenced = _identity_of(self._directory) != self._identity


def _identity_of(directory: str) -> tuple[int, int]:
    try:
        found = os.stat(lock_path(directory))  # noqa: PTH116 - paths are text in this package
    except OSError:
        return 0, 0
    return found.st_dev, found.st_ino
