"""The background build of indexes for sealed segments, one after the other, while the log may be busy.

Rule 1. A build goes in steps of about a millisecond, or of one read. The caller may do other work in the same thread
between two steps.
Rule 2. An index is derived from its segment. If it cannot be built it is left out, and lookups read the segment. No
error of a build ends the broker: it becomes a fault that the broker reports.
Rule 3. After a build the bytes that were read leave the page cache, because no client asked for them. The memory of the
build returns to the system: with a backlog of 1,000,000 messages it was 8 to 14 of the broker's 36 MiB.
"""

from collections import deque
from collections.abc import Collection, Iterable
from contextlib import suppress
from typing import NamedTuple, final

import lmdb

from ambermq.log.errors import DamageError
from ambermq.log.format.segment import Segment
from ambermq.log.index.segment_index import IndexBuilder
from ambermq.log.index.tables import TouchesOf
from ambermq.log.storage.heap import release_free_memory
from ambermq.log.storage.interface import File, Storage

__all__ = ["BackgroundBuilder", "IndexFault"]


class IndexFault(NamedTuple):
    """A segment without an index."""

    file_id: int
    """The id of the segment's file."""
    reason: str
    """Why its index could not be built."""
    is_damage: bool
    """Whether the segment is missing or differs from what was written. Otherwise the index could not be written."""


@final
class BackgroundBuilder:
    """The queue of segments that need an index, and the build in progress."""

    __slots__ = ("_batch_bytes_max", "_build", "_queue", "_storage", "_touches_of", "faults")

    def __init__(
        self, storage: Storage, segments: Iterable[Segment], *, batch_bytes_max: int, touches_of: TouchesOf
    ) -> None:
        """Start with these segments. An existing index that fits its segment is not built again."""
        self._storage = storage
        self._batch_bytes_max = batch_bytes_max
        self._touches_of = touches_of
        self._queue = deque(segments)
        self._build: tuple[File, IndexBuilder] | None = None
        self.faults: tuple[IndexFault, ...] = ()
        """The segments whose index could not be built. Another thread may read it: a change replaces the tuple."""

    @property
    def has_work(self) -> bool:
        """Whether a segment needs an index."""
        return bool(self._queue)

    def add(self, *segments: Segment) -> None:
        """Append segments to the queue."""
        self._queue.extend(segments)

    def leave_out(self, file_ids: Collection[int]) -> None:
        """Remove segments that do not belong to the log any more from the queue."""
        if self._queue and self._queue[0].file_id in file_ids:
            self.close()
        self._queue = deque(segment for segment in self._queue if segment.file_id not in file_ids)
        self.faults = tuple(fault for fault in self.faults if fault.file_id not in file_ids)

    def step(self) -> None:
        """Run one step of the first segment's build. It raises nothing: a failed build becomes a fault."""
        segment = self._queue[0]
        try:
            file, builder = self._current_build()
            if builder.step():
                return
            file.drop_cache(0, 0)
        except Exception as error:  # noqa: BLE001 - whatever a damaged segment leads to, the log works without an index
            self.faults = (*self.faults, _fault_of(segment, error))
        self.close()
        self._queue.popleft()
        release_free_memory()

    def close(self) -> None:
        """Abort the build in progress and remove its file. The next step starts it again.

        A file that a failing disk does not remove stays: the next build replaces it.
        """
        if self._build is not None:
            file, builder = self._build
            self._build = None
            with suppress(OSError, lmdb.Error):
                builder.close()
            with suppress(OSError):
                file.close()

    def _current_build(self) -> tuple[File, IndexBuilder]:
        if self._build is None:
            segment = self._queue[0]
            file = self._storage.open(segment.path)
            batch_bytes_max = self._batch_bytes_max
            builder = IndexBuilder(file, segment, batch_bytes_max=batch_bytes_max, touches_of=self._touches_of)
            self._build = file, builder
        return self._build


def _fault_of(segment: Segment, error: Exception) -> IndexFault:
    if isinstance(error, FileNotFoundError) and error.filename == segment.path:
        error = DamageError(segment.path, 0, "a segment that the manifest names", "no file")
    is_damage = not isinstance(error, (OSError, lmdb.Error, MemoryError))
    reason = str(error) if segment.path in str(error) else f"{segment.path}: {error!r}"
    return IndexFault(segment.file_id, reason, is_damage)
