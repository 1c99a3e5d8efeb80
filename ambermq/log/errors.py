"""The errors of a log. A class of its own exists only where a caller acts on the difference.

Rule 1. Damage is reported and never repaired silently.
Rule 2. A failed write or sync is never retried: after a failed fsync the kernel marks the pages clean, so a second
fsync that succeeds proves nothing.
"""

__all__ = ["ChecksumError", "DamageError", "ForeignError", "LockedError", "LogError", "LogFailed"]


class LogError(Exception):
    """The base class of every error that this package raises because of its input, the disk or another process."""


class LockedError(LogError):
    """Another process has locked the directory."""

    def __init__(self, path: str, holder: str) -> None:
        """`holder` is the text in the lock file: process id and URL of the broker that holds it; it may be empty."""
        self.path = path
        self.holder = holder.strip()
        super().__init__(f"{path} is locked by another broker ({self.holder or 'the lock file is empty'})")


class DamageError(LogError):
    """Durable bytes differ from what was written."""

    def __init__(self, file: str, position: int, expected: str, found: str) -> None:
        """`position` is a byte in `file`; `expected` and `found` are text for the error message."""
        self.file = file
        self.position = position
        self.expected = expected
        self.found = found
        super().__init__(f"{file} is damaged at position {position}: expected {expected}, found {found}")

    def __reduce__(self) -> tuple[type["DamageError"], tuple[str, int, str, str]]:
        """Return the constructor and its arguments, so that a worker process can send the error to its parent."""
        return DamageError, (self.file, self.position, self.expected, self.found)


class ChecksumError(LogError):
    """Two implementations of a checksum disagree, so nothing is known about the bytes."""


class ForeignError(LogError):
    """Another program or a newer version wrote the file. The message names the file, the expected and found values."""


class LogFailed(LogError):
    """A write or a sync failed: the log accepts no more writes, and the process must end with exit code 74."""
