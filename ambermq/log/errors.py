"""What can go wrong with a log, one class where a caller acts on the difference.

Damage is told, never repaired silently; a failed write or sync is never retried: after a failed fsync the kernel marks
the pages clean, so a second one that succeeds proves nothing.
"""

__all__ = ["DamageError", "ForeignError", "LockedError", "LogError", "LogFailed"]


class LogError(Exception):
    """The base of everything this folder raises about the world."""


class LockedError(LogError):
    """Another process holds the directory."""

    def __init__(self, path: str, holder: str) -> None:
        """`holder` is the text in the lock file: process id and URL of who holds it, possibly empty."""
        self.path = path
        self.holder = holder.strip()
        super().__init__(f"{path} is held by another broker ({self.holder or 'it has not said which'})")


class DamageError(LogError):
    """Bytes that were durable are not what was written."""

    def __init__(self, file: str, position: int, expected: str, found: str) -> None:
        """`position` is a byte in `file`; `expected` and `found` are for a person."""
        self.file = file
        self.position = position
        self.expected = expected
        self.found = found
        super().__init__(f"{file} is damaged at position {position}: expected {expected}, found {found}")

    def __reduce__(self) -> tuple[type["DamageError"], tuple[str, int, str, str]]:
        """Say how another process makes it again: what a task finds is told where it was asked for."""
        return DamageError, (self.file, self.position, self.expected, self.found)


class ForeignError(LogError):
    """The file is not one of ours, or a newer version wrote it; the message names file, expected and found."""


class LogFailed(LogError):
    """A write or a sync failed: the log takes nothing more, and the process is to end with `EXIT_CODE`."""

    EXIT_CODE = 74
    """EX_IOERR of sysexits.h; service managers are told not to restart on it blindly."""
