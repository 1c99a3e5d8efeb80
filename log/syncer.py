"""Group commit: one run of fdatasync after the other, beside the loop.

The loop replaces `target` whole, the syncer replaces `synced` whole; neither waits for the other. A target is taken
before the first file is synced, so that what is written meanwhile counts with the next one only. Files are synced in
log order, so that what is durable is always the log up to some offset.

`run` does it all in a thread that does nothing else; `begin`, then each file, then `end` is the same in steps.
"""

from msgspec import Struct

from log.storage import File

__all__ = ["SyncTarget", "Syncer"]


class SyncTarget(Struct, frozen=True):
    """What one sync makes durable."""

    end: int
    """The log's end when it was asked for."""

    written_bytes: int
    """Bytes that the log had written by then, since it was opened."""

    files: tuple[tuple[File, int], ...]
    """In log order: each file that may hold unsynced bytes, and `written_bytes` at its end."""


class Syncer:
    """`run` is the function of the sync lane."""

    __slots__ = ("_running", "synced", "target")

    def __init__(self, end: int) -> None:
        """Begin where everything below `end` is durable."""
        self.target = SyncTarget(end, 0, ())
        """What the loop wants durable next."""
        self.synced = self._running = self.target
        """What is durable."""

    def run(self) -> None:
        """Make the present target durable. Raises OSError, and must not be run again then."""
        for file in self.begin():
            file.datasync()
        self.end()

    def begin(self) -> list[File]:
        """Take the present target; return the files to sync for it, in order."""
        self._running, synced_bytes = self.target, self.synced.written_bytes
        # A file whose end was synced before may be closed by now.
        return [file for file, written_bytes in self._running.files if written_bytes > synced_bytes]

    def end(self) -> None:
        """Take note that those files are synced."""
        self.synced = self._running
