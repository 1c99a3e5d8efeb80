"""Message bodies by their records' offsets: what was written lately from memory, the rest from the segments.

Rule 1. What was written lately is hot and comes from memory (hot.py).
Rule 2. The rest is looked for in batches read before, then in the page cache, without waiting; only then is it cold, as
are compressed batches: a reader thread is asked, and the caller is told to come back.
Rule 3. What a request has brought stays until the next `completed()` at least, however large it is; older batches
make room.
Rule 4. A body that cannot be believed is DAMAGED, never bytes (see cold.py).

Everything here is called by one thread; only the append-only lists and tables are shared with the other. Where a
compaction replaces segments, the list of them is replaced whole: whoever finds a file gone looks into the new one.
"""

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
from ambermq.log.read.body_reads import DAMAGED, NotNow, ReadBatch, damaged_at, read_batches
from ambermq.log.read.tail_reader import TailReader
from ambermq.log.storage.interface import File, Storage
from ambermq.log.storage.worker_threads import Workers

__all__ = ["DAMAGED", "BodyStore"]

_TABLES_MAX: Final = 256
_FILES_MAX: Final = 64
_UNKNOWN_BYTES: Final = 1 << 62
"""Of a segment that this process has filled: zeros or the file's end tell where it ends."""
_base_offset = attrgetter("base_offset")


class _ReadBatches:
    """Batches read back, the least recently used dropped first."""

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
        """Drop what was not used for longest; `besides_bytes` of what was added last stay whatever their size."""
        while self.size_bytes > self._bytes_max + besides_bytes:
            self._drop(next(iter(self._batches)))

    def _drop(self, base_offset: int) -> None:
        self.size_bytes -= self._batches.pop(base_offset).cost_bytes
        del self._bases[bisect_right(self._bases, base_offset) - 1]


class _Files:
    """Open segments of one thread, the least recently used closed first."""

    __slots__ = ("_files", "_storage")

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._files: OrderedDict[str, File] = OrderedDict()

    def open(self, path: str) -> File:
        file = self._files.get(path)
        if file is None:
            file = self._files[path] = self._storage.open(path)
            if len(self._files) > _FILES_MAX:
                self._files.popitem(last=False)[1].close()
        self._files.move_to_end(path)
        return file

    def forget(self, path: str) -> None:
        """Close a file that is not asked for any more."""
        file = self._files.pop(path, None)
        if file is not None:
            file.close()

    def close(self) -> None:
        while self._files:
            self._files.popitem()[1].close()


class _Segments:
    """The segments of the log in order of their offsets; grows at the end only."""

    __slots__ = ("bases", "paths", "sealed")

    def __init__(self) -> None:
        self.bases: list[int] = []
        self.paths: list[str] = []
        self.sealed: list[Segment | None] = []
        """As they were sealed; None of those that this process began."""

    def append(self, base_offset: int, path: str, segment: Segment | None) -> None:
        # The base goes last: the other thread finds a segment only when all of it is there.
        self.paths.append(path)
        self.sealed.append(segment)
        self.bases.append(base_offset)

    def find(self, offset: int) -> int:
        """Return the number of the segment that answers for `offset`, -1 for none."""
        return bisect_right(self.bases, offset) - 1


class BodyStore:
    """The bodies of one log.

    Reads that wait run in a lane of `workers`; whoever collects those calls `completed()` then.
    """

    def __init__(self, storage: Storage, config: LogConfig, workers: Workers) -> None:
        self._config = config
        self._storage = storage
        self._lane = workers.lane("ambermq-bodies", self._bring)
        self._hot = BodyCache(config.hot_bytes_max)
        self._hot_large = BodyCache(config.hot_large_bytes_max)
        self._read = _ReadBatches(config.cold_bytes_max)
        self.is_idle = True
        """Nothing was read back: `completed` has nothing to do."""
        self._staying_bytes = 0
        self._files, self._reader_files = _Files(storage), _Files(storage)
        self._segments = _Segments()
        self._gone: deque[str] = deque()
        self._tables: dict[str, SparsePositions] = {}
        self._active = SparsePositions(0)
        """Of the active segment; `begin` comes before whatever is written."""
        self._asked: set[int] = set()
        self._requests: deque[tuple[list[int], dict[str, SparsePositions]]] = deque()
        self._brought: deque[tuple[list[int], list[ReadBatch], dict[str, SparsePositions]]] = deque()

    def add_sealed(self, segment: Segment) -> None:
        """Make a sealed segment known, in order of their offsets; its table of positions is read when first needed."""
        self._segments.append(segment.base_offset, segment.path, segment)

    def begin(self, *, base_offset: int, path: str, salt_crc: int) -> None:
        """Make the new active segment known: the batches that `wrote` names from now on lie in it."""
        self._active = self._tables[path] = SparsePositions(salt_crc)
        self._segments.append(base_offset, path, None)

    def wrote(self, base_offset: int, position: int, runs: Iterable[tuple[int, Sequence[Buffer], int]] = ()) -> None:
        """Note where a batch lies in the active segment, and keep its bodies, runs as those of a DraftBatch."""
        if position >= self._active.next_position:
            self._active.add(base_offset, position)
        for first_offset, bodies, body_bytes in runs:
            # Views of read buffers are large and few: with a bound of their own neither kind crowds out the other.
            hot = self._hot_large if type(bodies[0]) is memoryview else self._hot
            hot.keep(first_offset, bodies, body_bytes=body_bytes)

    def replace(self, paths: Collection[str], segments: Sequence[Segment]) -> None:
        """Read from new `segments`, each sealed, what those at `paths` have answered for."""
        old, new = self._segments, _Segments()
        rows = [row for row in zip(old.bases, old.paths, old.sealed, strict=True) if row[1] not in paths]
        rows += [(one.base_offset, one.path, one) for one in segments]
        for row in sorted(rows, key=itemgetter(0)):
            new.append(*row)
        self._segments = new
        for path in set(old.paths) - set(new.paths):
            self._tables.pop(path, None)
            self._files.forget(path)
            self._gone.append(path)
        # Its files are closed by the thread that has opened them: deleted ones would keep their space.
        self._lane.wake()

    def stretch(self, first: int, *, end: int, size: int) -> TailReader:
        """Return where the batches from `first` on lie, those below `end`, as far as one segment goes.

        `size` are the bytes written to the active segment.
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

    def forget(self, offsets: Sequence[int]) -> None:
        """Drop bodies from the hot cache that nobody will ask for again."""
        self._hot.forget(offsets)
        self._hot_large.forget(offsets)

    def get(self, offset: int) -> Buffer | None:
        """Return a body, DAMAGED where it cannot be believed, None where it is cold.

        A cold body was asked for by this call; come back after `completed()`.
        """
        body = self._hot_body(offset)
        if body is not None:
            return body
        bodies = self.get_run((offset,))
        return None if bodies is None else bodies[0]

    def get_run(self, offsets: Sequence[int]) -> list[Buffer] | None:
        """Return the bodies of `offsets`, each as by `get`; None where at least one is cold, which was asked for."""
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

    def _hot_body(self, offset: int) -> Buffer | None:
        body = self._hot.get(offset)
        return self._hot_large.get(offset) if body is None else body

    def fetch(self, offsets: Iterable[int]) -> None:
        """Ask the reader for bodies ahead of their use; those that were asked for already are not asked for twice."""
        wanted = sorted(offset for offset in offsets if offset not in self._asked)
        if wanted:
            self.is_idle = False
            self._asked.update(wanted)
            self._requests.append((wanted, dict(self._tables)))
            self._lane.wake()

    def completed(self) -> bool:
        """Take what the reader has brought; tell whether there was anything."""
        if not self._brought and not self._read.size_bytes:
            self._staying_bytes = 0
            self.is_idle = not self._asked
            return False
        self._read.make_room()
        size_bytes = self._read.size_bytes
        taken = False
        while self._brought:
            offsets, batches, tables = self._brought.popleft()
            self._asked.difference_update(offsets)
            for batch in batches:
                self._read.add(batch)
            self._keep_tables(tables)
            taken = True
        self._staying_bytes = max(0, self._read.size_bytes - size_bytes)
        return taken

    def close(self) -> None:
        """Close the segments; the workers are closed before."""
        self._files.close()
        self._reader_files.close()

    def _find(self, offset: int) -> ReadBatch | None:
        """Return the batch of `offset` if that needs no waiting."""
        batch = self._read.find(offset)
        if batch is not None or offset in self._asked:
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
        except (NotNow, OSError):
            return None
        self.is_idle = False
        self._read.make_room(besides_bytes=self._staying_bytes)
        for batch in batches:
            self._read.add(batch)
        return batches[0]

    def _read_now(self, path: str) -> Callable[[int, int], bytes]:
        file = self._files.open(path)

        def read(length: int, position: int) -> bytes:
            data = file.read_now(max(0, min(length, file.size() - position)), position)
            if data is None:
                raise NotNow
            return data

        return read

    def _keep_tables(self, tables: dict[str, SparsePositions]) -> None:
        self._tables.update(tables)
        while len(self._tables) > _TABLES_MAX:
            oldest = next(iter(self._tables))
            if self._tables[oldest] is self._active:
                self._tables[oldest] = self._tables.pop(oldest)
            else:
                del self._tables[oldest]

    def _bring(self) -> None:
        """Serve all requests: read their batches, and the tables of segments that have none yet. Runs in the lane."""
        while self._gone:
            self._reader_files.forget(self._gone.popleft())
        while self._requests:
            offsets, known = self._requests.popleft()
            batches: list[ReadBatch] = []
            loaded: dict[str, SparsePositions] = {}
            for offset in offsets:
                # Offsets rise, so what answers for this one, if anything yet does, has the greatest base below it.
                index = bisect_right(batches, offset, key=_base_offset) - 1
                if index < 0 or offset >= batches[index].next_offset:
                    del batches[index + 1 :]
                    batches += self._bring_one(offset, known, loaded)
            self._brought.append((offsets, batches, loaded))

    def _bring_one(
        self, offset: int, known: dict[str, SparsePositions], loaded: dict[str, SparsePositions]
    ) -> list[ReadBatch]:
        while True:
            segments = self._segments
            try:
                return self._read_from(segments, offset, known, loaded)
            except (OSError, ValueError, LogError):
                # What cannot be read is as lost as what reads wrong; the engine parks the message either way. But a
                # file that a compaction has replaced meanwhile is not asked for any more.
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
