"""Building the indexes of sealed segments one after the other, beside a log that may be busy.

Rule 1. Each is built a step at a time, about a millisecond or as long as a piece takes to be read. Whoever steps may do
other things in between, in the same thread: a build goes on where it was.
Rule 2. An index is derived from its segment: one that cannot be built is left out, and whoever looks for something
reads the segment.
Rule 3. What was read leaves the page cache when the index is there: nobody has asked for it. So does the memory that
it took leave the process: with 1,000,000 messages waiting it was 8 to 14 of the 36 MiB that they cost.
"""

from collections import deque
from collections.abc import Collection, Iterable
from typing import final

import lmdb

from ambermq.log.format.segment import Segment
from ambermq.log.index.segment_index import IndexBuilder
from ambermq.log.index.tables import TouchesOf
from ambermq.log.storage.interface import File, Storage
from ambermq.log.storage.malloc_trim import release_free_memory

__all__ = ["BackgroundBuilder"]


@final
class BackgroundBuilder:
    """The segments that wait for an index, and the build that is under way."""

    __slots__ = ("_batch_bytes_max", "_build", "_storage", "_touches_of", "_waiting")

    def __init__(
        self, storage: Storage, segments: Iterable[Segment], *, batch_bytes_max: int, touches_of: TouchesOf
    ) -> None:
        """Begin with these segments; indexes that are there and fit are not built again."""
        self._storage = storage
        self._batch_bytes_max = batch_bytes_max
        self._touches_of = touches_of
        self._waiting = deque(segments)
        self._build: tuple[File, IndexBuilder] | None = None

    @property
    def has_work(self) -> bool:
        """Whether any segment waits."""
        return bool(self._waiting)

    def add(self, *segments: Segment) -> None:
        """Let segments wait behind the others."""
        self._waiting.extend(segments)

    def leave_out(self, file_ids: Collection[int]) -> None:
        """Forget segments that are no more part of the log."""
        if self._waiting and self._waiting[0].file_id in file_ids:
            self.close()
        self._waiting = deque(segment for segment in self._waiting if segment.file_id not in file_ids)

    def step(self) -> None:
        """Do a little of the first one."""
        try:
            file, builder = self._opened()
            if builder.step():
                return
            file.drop_cache(0, 0)
        except (OSError, ValueError, lmdb.Error):
            pass
        self.close()
        self._waiting.popleft()
        release_free_memory()

    def close(self) -> None:
        """Give up the build that is under way: what was begun is removed, and begun again by the next step."""
        if self._build is not None:
            file, builder = self._build
            builder.close()
            file.close()
            self._build = None

    def _opened(self) -> tuple[File, IndexBuilder]:
        if self._build is None:
            segment = self._waiting[0]
            file = self._storage.open(segment.path)
            batch_bytes_max = self._batch_bytes_max
            builder = IndexBuilder(file, segment, batch_bytes_max=batch_bytes_max, touches_of=self._touches_of)
            self._build = file, builder
        return self._build
