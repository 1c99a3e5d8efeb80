"""Group commit: one function that does nothing but fdatasync, in a thread of its own.

The loop replaces `target` whole, the syncer replaces `synced` whole; neither waits for the other. A target is taken
before the first file is synced, so that what is written meanwhile counts with the next one only. Files are synced in
log order, so that what is durable is always the log up to some offset.
"""

from typing import NamedTuple

from log.storage import File

__all__ = ["SyncTarget", "Syncer"]


class SyncTarget(NamedTuple):
    """What one sync makes durable."""

    end: int
    """The log's end when it was asked for."""

    written_bytes: int
    """Bytes that the log had written by then, since it was opened."""

    files: tuple[tuple[File, int], ...]
    """In log order: each file that may hold unsynced bytes, and `written_bytes` at its end."""


class Syncer:
    """`run` is the function of the sync lane."""

    __slots__ = ("synced", "target")

    def __init__(self, end: int) -> None:
        """Begin where everything below `end` is durable."""
        self.target = SyncTarget(end, 0, ())
        """What the loop wants durable next."""
        self.synced = self.target
        """What is durable."""

    def run(self) -> None:
        """Make the present target durable. Raises OSError, and must not be run again then."""
        target, synced = self.target, self.synced
        for file, written_bytes in target.files:
            # A file whose end was synced before may be closed by now.
            if written_bytes > synced.written_bytes:
                file.datasync()
        self.synced = target
