"""Group commit: one run of fdatasync after the other, beside the loop.

The loop replaces `target` whole, the syncer replaces `synced` whole; neither waits for the other. A target is taken
before the first file is synced, so that what is written meanwhile counts with the next one only. Files are synced in
log order, so that what is durable is always the log up to some offset.

`run` does it all in a thread that does nothing else. A lane that goes in steps (sync_lane.py) takes the target, syncs
its files and then sets `synced`.
"""

from msgspec import Struct

from ambermq.log.storage.interface import File

__all__ = ["GroupCommit", "SyncTarget"]


class SyncTarget(Struct, frozen=True):
    """What one sync makes durable."""

    end: int
    """The log's end when it was asked for."""

    written_bytes: int
    """Bytes that the log had written by then, since it was opened."""

    file: File
    """What was written to last."""

    earlier: tuple[tuple[File, int], ...] = ()
    """The files before it that may hold unsynced bytes, in log order: each with `written_bytes` at its end."""

    def unsynced_files(self, synced_bytes: int) -> list[File]:
        """Return the files to sync, in order, where `synced_bytes` of all that was written are durable.

        None of those whose end is: they may be closed by now. So may the last one, where the run before has taken this
        target already.
        """
        if self.written_bytes <= synced_bytes:
            return []
        if not self.earlier:
            return [self.file]
        return [*(file for file, written_bytes in self.earlier if written_bytes > synced_bytes), self.file]


class GroupCommit:
    """`run` is the function of the sync lane."""

    __slots__ = ("synced", "target")

    def __init__(self, end: int, file: File) -> None:
        """Begin where everything below `end` is durable, and `file` is written to."""
        self.target = SyncTarget(end, 0, file)
        """What the loop wants durable next."""
        self.synced = self.target
        """What is durable."""

    def run(self) -> None:
        """Make the present target durable. Raises OSError, and must not be run again then."""
        target = self.target
        for file in target.unsynced_files(self.synced.written_bytes):
            file.datasync()
        self.synced = target
