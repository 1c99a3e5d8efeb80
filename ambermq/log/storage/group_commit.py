"""Group commit: one fdatasync run after the other, in parallel with the event loop.

Rule 1. The loop replaces `target` as a whole, the sync lane replaces `synced` as a whole. Neither waits for the other.
Rule 2. The lane reads the target before it syncs the first file. Bytes written during the run count for the next one.
Rule 3. Files are synced in log order, so the durable part is always the log up to some offset.

`run` does the whole work in a thread that does nothing else. `SyncLane` (sync_lane.py) does the same in steps: it reads
the target, syncs its files and then sets `synced`.
"""

from msgspec import Struct

from ambermq.log.storage.interface import File

__all__ = ["GroupCommit", "SyncTarget"]


class SyncTarget(Struct, frozen=True):
    """The part of the log that one sync makes durable."""

    end: int
    """The log's end when the sync was requested."""

    written_bytes: int
    """Bytes that the log had written until then, since it was opened."""

    file: File
    """The file that was written last."""

    earlier: tuple[tuple[File, int], ...] = ()
    """Earlier files that may have unsynced bytes, in log order: each with `written_bytes` at its end."""

    def unsynced_files(self, synced_bytes: int) -> list[File]:
        """Return the files to sync, in order, if `synced_bytes` of the written bytes are durable already.

        A file whose end is durable is not returned: it may be closed. The list is empty if an earlier run has synced
        this target.
        """
        if self.written_bytes <= synced_bytes:
            return []
        if not self.earlier:
            return [self.file]
        return [*(file for file, written_bytes in self.earlier if written_bytes > synced_bytes), self.file]


class GroupCommit:
    """The target and the result of the syncs of one log. `run` is the function of the sync lane."""

    __slots__ = ("synced", "target")

    def __init__(self, end: int, file: File) -> None:
        """Start with everything below `end` durable; the log writes to `file`."""
        self.target = SyncTarget(end, 0, file)
        """The part of the log that the loop wants durable next."""
        self.synced = self.target
        """The part of the log that is durable."""

    def run(self) -> None:
        """Make the current target durable. After an OSError it must not be called again."""
        target = self.target
        for file in target.unsynced_files(self.synced.written_bytes):
            file.datasync()
        self.synced = target
