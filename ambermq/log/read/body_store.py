"""Message bodies by the offsets of their records: recent ones from memory, the others from the segments.

Rule 1. A recently written body is hot and comes from memory (body_cache.py).
Rule 2. Any other body is looked up in batches read before, then in the page cache, without waiting. Otherwise it is
cold, and so is a compressed batch: the reader thread reads it, and the caller asks again after `completed()`.
Rule 3. The batches of a request stay at least until the next `completed()`, however large they are. Older batches are
dropped.
Rule 4. A damaged body is DAMAGED, never bytes (see body_reads.py).

One thread calls everything here and shares only append-only lists and tables with the reader thread. When a compaction
replaces segments, the list of segments is replaced as a whole; if the reader thread then misses a file, it uses the new
list.
"""

import errno
from bisect import bisect_right, insort
from collections import OrderedDict, deque
from collections.abc import Callable, Collection, Iterable, Sequence
from operator import attrgetter, itemgetter
from typing import Final

from ambermq.log.buffer import Buffer
from ambermq.log.config import LogConfig
from ambermq.log.errors import LogError
from ambermq.log.format.segment import Segment
from ambermq.log.format.sparse_positions import SparsePositions
from ambermq.log.index.segment_index import load_positions
from ambermq.log.read.body_cache import BodyCache
from ambermq.log.read.body_reads import DAMAGED, ReadBatch, ReadWouldWait, damaged_at, read_batches
from ambermq.log.read.tail_reader import TailReader
from ambermq.log.storage.heap import release_free_memory
from ambermq.log.storage.interface import File, Storage
from ambermq.log.storage.worker_threads import Workers

__all__ = ["DAMAGED", "BodyStore"]

_TABLES_MAX: Final = 256
_FILES_MAX: Final = 4
"""The segments that a thread keeps open. Few: each virtual host has eight of the broker's reserved descriptors."""
_UNKNOWN_BYTES: Final = 1 << 62
"""The size of a segment that this process filled: zeros or the end of the file end its walk."""
_base_offset = attrgetter("base_offset")


class _ReadBatches:
    """The batches read from segments. The least recently used one is dropped first."""

    __slots__ = ("_bases", "_batches", "_bytes_max", "size_bytes")

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._batches: OrderedDict[int, ReadBatch] = OrderedDict()
        self._bases: list[int] = []
        self.size_bytes = 0

    def add(self, batch: ReadBatch) -> None:
        if batch.base_offset in self._batches:
            self._drop(batch.base_offset)
        self._batches[batch.base_offset] = batch
        insort(self._bases, batch.base_offset)
        self.size_bytes += batch.cost_bytes

    def find(self, offset: int) -> ReadBatch | None:
        index = bisect_right(self._bases, offset) - 1
        if index < 0:
            return None
        batch = self._batches[self._bases[index]]
        if offset >= batch.next_offset:
            return None
        self._batches.move_to_end(batch.base_offset)
        return batch

    def make_room(self, *, besides_bytes: int = 0) -> None:
        """Drop the least recently used batches down to the limit plus `besides_bytes`."""
        while self.size_bytes > self._bytes_max + besides_bytes:
            self._drop(next(iter(self._batches)))

    def _drop(self, base_offset: int) -> None:
        self.size_bytes -= self._batches.pop(base_offset).cost_bytes
        del self._bases[bisect_right(self._bases, base_offset) - 1]


class _Files:
    """The open segments of one thread. The least recently used one is closed first.

    The kernel reads nothing ahead: a disk that reads megabytes at a time lets the syncs of the log wait for ten
    milliseconds. The next batch is read with the one that is asked for.
    """

    __slots__ = ("_files", "_storage")

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._files: OrderedDict[str, File] = OrderedDict()

    def open(self, path: str) -> File:
        file = self._files.get(path)
        if file is None:
            file = self._files[path] = self._open(path)
            if len(self._files) > _FILES_MAX:
                self._files.popitem(last=False)[1].close()
        self._files.move_to_end(path)
        return file

    def _open(self, path: str) -> File:
        try:
            return self._storage.open(path, read_ahead=False)
        except OSError as error:
            if error.errno not in (errno.EMFILE, errno.ENFILE) or not self._files:
                raise
            # The other files can be opened again.
            self.close()
            return self._storage.open(path, read_ahead=False)

    def forget(self, path: str) -> None:
        """Close a file that is not needed any more."""
        file = self._files.pop(path, None)
        if file is not None:
            file.close()

    def close(self) -> None:
        while self._files:
            self._files.popitem()[1].close()


class _Segments:
    """The segments of the log in order of their offsets. The list grows only at its end."""

    __slots__ = ("bases", "paths", "sealed")

    def __init__(self) -> None:
        self.bases: list[int] = []
        self.paths: list[str] = []
        self.sealed: list[Segment | None] = []
        """The sealed segments; None for a segment that this process began."""

    def append(self, base_offset: int, path: str, segment: Segment | None) -> None:
        # The base is appended last: the other thread then finds a segment only with its path.
        self.paths.append(path)
        self.sealed.append(segment)
        self.bases.append(base_offset)

    def find(self, offset: int) -> int:
        """Return the index of the segment whose range has `offset`, or -1."""
        return bisect_right(self.bases, offset) - 1


class BodyStore:
    """The bodies of one log.

    Reads that wait run in a lane of `workers`. After `workers.collect()` the caller calls `completed()`.
    """

    def __init__(self, storage: Storage, config: LogConfig, workers: Workers) -> None:
        self._config = config
        self._storage = storage
        self._lane = workers.lane("ambermq-bodies", self._serve_requests)
        self._hot = BodyCache(config.hot_bytes_max)
        self._hot_large = BodyCache(config.hot_large_bytes_max)
        self._read = _ReadBatches(config.cold_bytes_max)
        self.is_idle = True
        """Whether `completed` has nothing to do: nothing was read or requested."""
        self._last_request_bytes = 0
        self._files, self._reader_files = _Files(storage), _Files(storage)
        self._segments = _Segments()
        self._replaced_paths: deque[str] = deque()
        self._tables: dict[str, SparsePositions] = {}
        self._active = SparsePositions(0)
        """The positions in the active segment; `begin` sets it before the first write."""
        self.next_position = 0
        """A batch without bodies that begins before this position needs no `note_batch`."""
        self._requested_offsets: set[int] = set()
        self._requests: deque[tuple[list[int], dict[str, SparsePositions]]] = deque()
        self._results: deque[tuple[list[int], list[ReadBatch], dict[str, SparsePositions]]] = deque()

    def add_sealed(self, segment: Segment) -> None:
        """Add a sealed segment, in the order of offsets. Its table of positions is loaded at the first use."""
        self._segments.append(segment.base_offset, segment.path, segment)

    def begin(self, *, base_offset: int, path: str, salt_crc: int) -> None:
        """Add the new active segment, to which the batches of later calls of `note_batch` belong."""
        self._active = self._tables[path] = SparsePositions(salt_crc)
        self.next_position = 0
        self._segments.append(base_offset, path, None)

    def note_batch(
        self, base_offset: int, position: int, runs: Iterable[tuple[int, Sequence[Buffer], int]] = ()
    ) -> None:
        """Store the position of a batch in the active segment, and cache its bodies: the runs of a DraftBatch."""
        if position >= self.next_position:
            self._active.add(base_offset, position)
            self.next_position = self._active.next_position
        for first_offset, bodies, body_bytes in runs:
            # Views of read buffers are large and few. Separate limits keep one kind from evicting the other.
            hot = self._hot_large if type(bodies[0]) is memoryview else self._hot
            hot.add(first_offset, bodies, body_bytes=body_bytes)

    def replace(self, paths: Collection[str], segments: Sequence[Segment]) -> None:
        """Read from the new sealed `segments` instead of those at `paths`."""
        old, new = self._segments, _Segments()
        rows = [row for row in zip(old.bases, old.paths, old.sealed, strict=True) if row[1] not in paths]
        rows += [(one.base_offset, one.path, one) for one in segments]
        for row in sorted(rows, key=itemgetter(0)):
            new.append(*row)
        self._segments = new
        for path in set(old.paths) - set(new.paths):
            self._tables.pop(path, None)
            self._files.forget(path)
            self._replaced_paths.append(path)
        # The thread that opened a file closes it: an open file would keep its disk space after the deletion.
        self._lane.wake()

    def tail_reader(self, first: int, *, end: int, size: int) -> TailReader:
        """Return a reader of the batches from `first` on and below `end`, in one segment.

        `size` is the number of bytes written to the active segment.
        """
        segments = self._segments
        index = max(segments.find(first), 0)
        path, segment = segments.paths[index], segments.sealed[index]
        is_last = index == len(segments.bases) - 1
        if not is_last:
            end = min(end, segments.bases[index + 1])
            size = _UNKNOWN_BYTES if segment is None else segment.size
        batch_bytes_max = self._config.batch_bytes_max
        return TailReader(self._storage, path, segment, self._tables.get(path), first, end, size, batch_bytes_max)

    def age(self) -> None:
        """Drop hot bodies that were written some seconds ago. The caller calls it once a second."""
        was_filled = bool(self._hot)
        if was_filled and not self._hot.age():
            release_free_memory()

    def forget(self, offsets: Sequence[int]) -> None:
        """Drop bodies that are not needed again from the hot cache."""
        self._hot.forget(offsets)
        self._hot_large.forget(offsets)

    def get(self, offset: int) -> Buffer | None:
        """Return a body, DAMAGED if it is damaged, or None if it is cold.

        The call requests a cold body from the reader thread; the caller calls again after `completed()`.
        """
        body = self._hot_body(offset)
        if body is not None:
            return body
        bodies = self.get_run((offset,))
        return None if bodies is None else bodies[0]

    def get_run(self, offsets: Sequence[int]) -> list[Buffer] | None:
        """Return the bodies of `offsets`, each as `get` does, or None if one is cold; cold ones are requested."""
        hot = self._hot.get_run(offsets) or self._hot_large.get_run(offsets)
        if hot is not None:
            return hot
        bodies: list[Buffer] = []
        cold: list[int] = []
        index, count = 0, len(offsets)
        while index < count:
            offset = offsets[index]
            body = self._hot_body(offset)
            if body is not None:
                bodies.append(body)
                index += 1
                continue
            batch = self._find(offset)
            if batch is None:
                cold.append(offset)
                index += 1
                continue
            last = index + 1
            while last < count and batch.base_offset <= offsets[last] < batch.next_offset:
                last += 1
            bodies += batch.run(offsets[index:last])
            index = last
        if not cold:
            return bodies
        self.fetch(cold)
        return None

    def has(self, offset: int) -> bool:
        """Return whether a body is in memory."""
        return self._hot_body(offset) is not None or self._read.find(offset) is not None

    def _hot_body(self, offset: int) -> Buffer | None:
        body = self._hot.get(offset)
        return self._hot_large.get(offset) if body is None else body

    def fetch(self, offsets: Iterable[int]) -> None:
        """Request bodies from the reader thread before their use. A body that was requested already is not again."""
        wanted = sorted(offset for offset in offsets if offset not in self._requested_offsets)
        if wanted:
            self.is_idle = False
            self._requested_offsets.update(wanted)
            self._requests.append((wanted, dict(self._tables)))
            self._lane.wake()

    def completed(self) -> bool:
        """Add the batches that the reader thread has read; return whether there were any."""
        if not self._results and not self._read.size_bytes:
            self._last_request_bytes = 0
            self.is_idle = not self._requested_offsets
            return False
        self._read.make_room()
        size_bytes = self._read.size_bytes
        has_results = False
        while self._results:
            offsets, batches, tables = self._results.popleft()
            self._requested_offsets.difference_update(offsets)
            for batch in batches:
                self._read.add(batch)
            self._add_tables(tables)
            has_results = True
        self._last_request_bytes = max(0, self._read.size_bytes - size_bytes)
        return has_results

    def close(self) -> None:
        """Close the segments. The workers must be closed before."""
        self._files.close()
        self._reader_files.close()

    def _find(self, offset: int) -> ReadBatch | None:
        """Return the batch of `offset`, or None if that would have to wait."""
        batch = self._read.find(offset)
        if batch is not None or offset in self._requested_offsets:
            return batch
        index = self._segments.find(offset)
        if index < 0:
            return damaged_at(offset)
        path = self._segments.paths[index]
        positions = self._tables.get(path)
        if positions is None:
            return None
        try:
            read = self._read_now(path)
            limit = self._config.batch_bytes_max
            batches = read_batches(read, positions, offset, batch_bytes_max=limit, decompresses=False)
        except (ReadWouldWait, OSError):
            return None
        self.is_idle = False
        self._read.make_room(besides_bytes=self._last_request_bytes)
        for batch in batches:
            self._read.add(batch)
        return batches[0]

    def _read_now(self, path: str) -> Callable[[int, int], bytes]:
        file = self._files.open(path)

        def read(length: int, position: int) -> bytes:
            data = file.read_now(max(0, min(length, file.size() - position)), position)
            if data is None:
                raise ReadWouldWait
            return data

        return read

    def _add_tables(self, tables: dict[str, SparsePositions]) -> None:
        self._tables.update(tables)
        while len(self._tables) > _TABLES_MAX:
            oldest = next(iter(self._tables))
            if self._tables[oldest] is self._active:
                self._tables[oldest] = self._tables.pop(oldest)
            else:
                del self._tables[oldest]

    def _serve_requests(self) -> None:
        """Serve all requests: read their batches and load missing tables of positions. Runs in the reader thread."""
        while self._replaced_paths:
            self._reader_files.forget(self._replaced_paths.popleft())
        while self._requests:
            offsets, known = self._requests.popleft()
            batches: list[ReadBatch] = []
            loaded: dict[str, SparsePositions] = {}
            for offset in offsets:
                # Offsets rise, so only the batch with the greatest base at or below this offset may have it.
                index = bisect_right(batches, offset, key=_base_offset) - 1
                if index < 0 or offset >= batches[index].next_offset:
                    del batches[index + 1 :]
                    batches += self._read_offset(offset, known, loaded)
            self._results.append((offsets, batches, loaded))

    def _read_offset(
        self, offset: int, known: dict[str, SparsePositions], loaded: dict[str, SparsePositions]
    ) -> list[ReadBatch]:
        while True:
            segments = self._segments
            try:
                return self._read_from(segments, offset, known, loaded)
            except (OSError, ValueError, LogError):
                # A read error counts as damage: the engine parks the message in both cases. But if a compaction has
                # replaced the file in the meantime, the new list of segments is tried.
                if segments is self._segments:
                    return [damaged_at(offset)]

    def _read_from(
        self, segments: _Segments, offset: int, known: dict[str, SparsePositions], loaded: dict[str, SparsePositions]
    ) -> list[ReadBatch]:
        index = segments.find(offset)
        path, segment = segments.paths[index], segments.sealed[index]
        file = self._reader_files.open(path)
        positions = known.get(path) or loaded.get(path)
        if positions is None:
            positions = loaded[path] = load_positions(file, path, segment, batch_bytes_max=self._config.batch_bytes_max)
        return read_batches(file.read, positions, offset, batch_bytes_max=self._config.batch_bytes_max)
