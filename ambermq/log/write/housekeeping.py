"""The housekeeping thread of a running log: spares, manifest edits, disk space, page cache, deletions and indexes.

Rule 1. Only this thread edits the manifest. An edit for a roll follows when the sealed segment is durable. The same
        edit names the next spare, before its file is made, so that no file id is used twice.
Rule 2. A full disk is a state, not a failure: publishing has no room, the ballast is released for one more spare, and
        every run tries again. Any other failed call ends the lane, which is fatal. So does every failed sync of the
        directory after the manifest was replaced.
Rule 3. A spare is filled with zeros slowly, 4 MiB at a time and synced every 8 MiB, while the log is quiet. When the
        log is busy the rest is only allocated (fallocate). A bulk writer in parallel raised the time of the log's syncs
        from 3 ms to 105-365 ms.
Rule 4. Sealed segments leave the page cache soon, so that the kernel reuses their pages. A write of 64 KiB into reused
        pages costs the loop 9 us. Into pages that the machine never used, or returned to its host, it costs 220 us.
Rule 5. A file on the list `removed` is deleted (file_deletion.py) as soon as no reader's manifest names it. After a
        compaction the loop must have stopped reading it too.
Rule 6. Indexes are derived data: if one cannot be built it is missing, and nothing fails. They are built in small steps
        (background_builder.py), with pauses while the log is written. A segment without an index has its positions in
        memory.
"""

import errno
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from ambermq.log.compaction.adoption import Adoption, adopt
from ambermq.log.config import LogConfig
from ambermq.log.errors import LogError, LogFailed
from ambermq.log.format.segment import Segment, segment_path
from ambermq.log.format.time_range import TimeRange
from ambermq.log.index.background_builder import BackgroundBuilder
from ambermq.log.index.tables import TouchesOf
from ambermq.log.manifest.file_deletion import FileDeletion
from ambermq.log.manifest.manifest import Manifest, commit, forget_removed, load, name_spare, roll
from ambermq.log.manifest.snapshot_placement import Placement, place, sweep
from ambermq.log.storage.interface import File, Storage
from ambermq.log.storage.worker_threads import Lane

__all__ = ["Housekeeper", "Space", "Spare", "segment_bytes"]

_STEP_BYTES = 4 * 1024 * 1024
_SYNC_BYTES = 2 * _STEP_BYTES
_ZERO_BYTES_PER_S = 64 * 1024 * 1024
_BUSY_BYTES_PER_S = 4 * 1024 * 1024
_PROBE_S = 0.005
_INDEX_PAUSE_S = 0.005
_CALM_INDEX_PAUSES = 10
"""A step takes 1 to 4 ms for 2,000 records. With this pause a quiet log spends 5 % of the interpreter on indexes."""
_BUSY_INDEX_PAUSES = 3
"""A busy log spends about 10 % of the interpreter, otherwise indexes would fall behind."""
_FULL_BYTES_PER_S = 64 * 1024 * 1024
_FULL_INDEX_PAUSES = 40
"""A log written faster than `_FULL_BYTES_PER_S` spends 1 %: its indexes fall behind in any case."""

_NO_SPACE = {errno.ENOSPC, errno.EDQUOT}


class Spare(NamedTuple):
    """A segment file that is ready for use: allocated, synced and named in the manifest."""

    file_id: int
    size: int
    """The allocated bytes."""

    file: File


class Space(NamedTuple):
    """The free space of the disk."""

    free_bytes: int
    """Free bytes of the disk, minus the ballast if that is not allocated yet."""

    is_full: bool
    """Whether the last spare could not be allocated, or needed the space of the ballast."""


def segment_bytes(config: LogConfig, earlier_bytes: int) -> int:
    """Return the size of the segment after `earlier_bytes` of segments: by default 4, 8, 16, 32, 64, 64 MiB."""
    smallest = config.segment_bytes_min
    return min(config.segment_bytes_max, smallest + earlier_bytes + -earlier_bytes % smallest)


class Housekeeper:
    """The housekeeping of one log. `run` is the function of its lane; the loop calls the other methods."""

    __slots__ = (
        "_adoptions",
        "_cached",
        "_cached_bytes",
        "_config",
        "_directory",
        "_edits",
        "_file_deletion",
        "_finished_adoptions",
        "_has_ballast",
        "_has_spare",
        "_index_builder",
        "_is_full",
        "_placements",
        "_rolls",
        "_storage",
        "_written_bytes",
        "deletion_count",
        "faults",
        "lane",
        "manifest",
        "space",
        "spares",
    )

    lane: Lane
    """The lane that runs `run`. The log sets it before the first run."""

    def __init__(
        self,
        *,
        storage: Storage,
        directory: str,
        config: LogConfig,
        manifest: Manifest,
        written_bytes: Callable[[], int],
        touches_of: TouchesOf,
    ) -> None:
        """Own the manifest from now on.

        `written_bytes` returns the bytes that the log has written so far; `touches_of` yields the keys of a batch.
        """
        self.manifest = manifest
        self.spares: deque[Spare] = deque()
        """At most one spare. The loop takes it from here."""
        self.deletion_count = 0
        """How often the files that are not needed any more were deleted, as far as no reader uses them."""
        self._storage = storage
        self._directory = directory
        self._config = config
        self._file_deletion = FileDeletion(storage, directory)
        self.faults = self._file_deletion.faults
        """Harmless faults: files that could not be deleted. The loop takes them from here."""
        self._written_bytes = written_bytes
        self._rolls: deque[tuple[Segment, File, TimeRange | None]] = deque()
        self._edits: deque[Callable[[Manifest], Manifest]] = deque()
        self._placements: deque[Placement] = deque()
        self._adoptions: deque[Adoption] = deque()
        self._finished_adoptions: list[Adoption] = []
        self._index_builder = BackgroundBuilder(
            storage,
            (one.at(directory) for one in manifest.sealed),
            batch_bytes_max=config.batch_bytes_max,
            touches_of=touches_of,
        )
        self._cached: deque[Segment] = deque()
        self._cached_bytes = 0
        self._has_spare = False
        self._has_ballast = not config.ballast_bytes
        self._is_full = False
        sweep(storage, directory)
        self.space = self._sample()

    def allocate_active(self, file: File, position: int) -> int:
        """Allocate the active segment from `position` on, before the log starts, and return its size.

        Only its first 4 MiB are filled with zeros, so that the broker starts fast. On a full disk nothing is allocated.
        """
        size = segment_bytes(self._config, sum(segment.size for segment in self.manifest.sealed))
        zero_bytes = min(_STEP_BYTES, size - position)
        if zero_bytes <= 0:
            return position

        def allocate() -> None:
            file.allocate(position, zero_bytes, zero=True)
            if size > position + zero_bytes:
                file.allocate(position + zero_bytes, size - position - zero_bytes, zero=False)
            file.sync()

        return size if self._succeeds(allocate) else position

    def seal(self, segment: Segment, file: File, times: TimeRange | None) -> None:
        """Request the edit that seals `segment`, which is durable; the lane closes its `file` afterwards.

        `times` are those of its records.
        """
        self._rolls.append((segment, file, times))
        self.lane.wake()

    def close(self) -> None:
        """Close the files that the loop has not taken. The thread has ended before."""
        self._index_builder.close()
        for _, file, _ in self._rolls:
            file.close()
        for spare in self.spares:
            spare.file.close()

    def edit(self, change: Callable[[Manifest], Manifest]) -> None:
        """Request a change of the manifest. Changes are committed in the order of the requests."""
        self._edits.append(change)
        self.lane.wake()

    def place(self, placement: Placement) -> None:
        """Request a name for a snapshot, after the edits requested before. `placement` has the result."""
        self._placements.append(placement)
        self.lane.wake()

    def adopt(self, adoption: Adoption) -> None:
        """Request the adoption of new segments, after earlier requests. `adoption` has the result."""
        self._adoptions.append(adoption)
        self.lane.wake()

    def run(self) -> None:
        """Run all pending work. Raises OSError if the disk fails in another way than being full."""
        if not self._succeeds(self._do_required_work) and self._release_ballast():
            self._succeeds(self._do_required_work)
        self._succeeds(self._allocate_ballast)
        if self._has_ballast and self._has_spare:
            self._is_full = False
        self.space = self._sample()
        self._succeeds(self._drop_caches)
        self._build_indexes()

    def _succeeds(self, step: Callable[[], None]) -> bool:
        try:
            step()
        except OSError as error:
            if error.errno not in _NO_SPACE:
                raise
            self._is_full = True
            self.space = self._sample()
            return False
        return True

    def _do_required_work(self) -> None:
        self._commit_rolls()
        if self._edits or self._placements or self._adoptions:
            self._serve_requests()
        # Before the spare, which may need the space that a deletion frees.
        self._delete_removed()
        if not self._has_spare:
            self._prepare_spare()

    def _serve_requests(self) -> None:
        """Serve the requests of the loop and notify it at once, because a spare and indexes may take seconds."""
        while self._edits:
            self._commit(self._edits[0])
            self._edits.popleft()
        while self._placements:
            self._place(self._placements.popleft())
        while self._adoptions:
            self._adopt(self._adoptions.popleft())
        self.lane.notify()

    def _commit(self, change: Callable[[Manifest], Manifest]) -> None:
        try:
            self.manifest = commit(self._storage, self._directory, change)
        except LogFailed:
            # The manifest was replaced, but perhaps not durably. Readers see the new one already.
            self.manifest = load(self._storage, self._directory) or self.manifest
            raise

    def _place(self, placement: Placement) -> None:
        """Name a snapshot. If the disk is full or its file is missing, the request fails and is not retried."""
        try:
            placement.snapshot = place(
                self._storage, self._directory, placement.snapshot, self._commit_and_return, placement.source
            )
        except OSError as error:
            if error.errno not in _NO_SPACE | {errno.ENOENT}:
                raise
            placement.error = error
            sweep(self._storage, self._directory)
        placement.is_done = True

    def _adopt(self, adoption: Adoption) -> None:
        """Replace old segments by new ones. If that fails, the manifest is unchanged."""
        try:
            adopt(self._storage, self._directory, adoption, self._commit_and_return)
        except (LogError, OSError) as error:
            if isinstance(error, LogFailed) or (isinstance(error, OSError) and error.errno not in _NO_SPACE):
                raise
            adoption.error = error
        else:
            removed_ids = {one.file_id for one in adoption.inputs}
            self._finished_adoptions.append(adoption)
            self._index_builder.leave_out(removed_ids)
            self._index_builder.add(*(one.at(self._directory) for one in adoption.segments))
        adoption.is_done = True

    def _commit_and_return(self, change: Callable[[Manifest], Manifest]) -> Manifest:
        self._commit(change)
        return self.manifest

    def _commit_rolls(self) -> None:
        while self._rolls:
            segment, file, times = self._rolls[0]
            self._commit(partial(roll, base_offset=segment.next_offset, size=segment.size, times=times))
            self._rolls.popleft()
            file.close()
            self._has_spare = False
            self._cached.append(segment)
            self._cached_bytes += segment.size
            self._index_builder.add(segment)

    def _prepare_spare(self) -> None:
        if self.manifest.spare is None:
            self._commit(name_spare)
        file_id = self.manifest.spare
        assert file_id is not None
        size = segment_bytes(self._config, self._earlier_bytes())
        path = segment_path(self._directory, file_id)
        file = self._storage.open(path, create=True)
        try:
            self._fill(file, size)
            file.sync()
            self._storage.sync_directory(f"{self._directory}/segments")
        except OSError:
            file.close()
            self._storage.unlink(path)
            raise
        self._has_spare = True
        self.spares.append(Spare(file_id, size, file))

    def _earlier_bytes(self) -> int:
        """Return the bytes of all segments before the spare; the active one counts as full."""
        sealed_bytes = sum(segment.size for segment in self.manifest.sealed)
        return sealed_bytes + segment_bytes(self._config, sealed_bytes)

    def _fill(self, file: File, size: int) -> None:
        seconds = _PROBE_S
        for position in range(0, size, _STEP_BYTES):
            if self._is_busy_during(seconds):
                file.allocate(position, size - position, zero=False)
                return
            step_bytes = min(_STEP_BYTES, size - position)
            file.allocate(position, step_bytes, zero=True)
            if (position + _STEP_BYTES) % _SYNC_BYTES == 0:
                file.datasync()
            seconds = step_bytes / _ZERO_BYTES_PER_S

    def _is_busy_during(self, seconds: float) -> bool:
        """Wait; return whether the log was busy during the wait, or is closing."""
        before = self._written_bytes()
        return self.lane.pause(seconds) or self._written_bytes() - before > _BUSY_BYTES_PER_S * seconds

    def _delete_removed(self) -> None:
        self._finished_adoptions = [one for one in self._finished_adoptions if not one.is_released]
        in_use = {segment.file_id for one in self._finished_adoptions for segment in one.inputs}
        removed_ids = self._file_deletion.delete(frozenset(self.manifest.removed) - in_use)
        if removed_ids:
            self._commit(partial(forget_removed, file_ids=removed_ids))
        self.deletion_count += 1

    def _ballast_path(self) -> str:
        return f"{self._directory}/ballast"

    def _allocate_ballast(self) -> None:
        """Allocate the ballast if it is missing and the disk has room for it and one segment."""
        if self._has_ballast:
            return
        path, size = self._ballast_path(), self._config.ballast_bytes
        ballast_file_bytes = self._storage.size(path) if self._storage.exists(path) else 0
        if ballast_file_bytes < size:
            wanted_bytes = size - ballast_file_bytes + self._config.segment_bytes_max
            if self._storage.free_bytes(self._directory) < wanted_bytes:
                self._is_full = True
                return
            file = self._storage.open(path, create=True)
            try:
                file.allocate(0, size, zero=False)
                file.sync()
            finally:
                file.close()
            self._storage.sync_directory(self._directory)
        self._has_ballast = True

    def _release_ballast(self) -> bool:
        """Delete the ballast, so that settlements can use its space; return whether it existed."""
        path = self._ballast_path()
        if not self._storage.exists(path):
            return False
        self._storage.unlink(path)
        self._has_ballast = False
        return True

    def _sample(self) -> Space:
        missing_ballast_bytes = 0 if self._has_ballast else self._config.ballast_bytes
        return Space(max(0, self._storage.free_bytes(self._directory) - missing_ballast_bytes), self._is_full)

    def _drop_caches(self) -> None:
        while self._cached_bytes > self._config.cached_bytes_max:
            segment = self._cached.popleft()
            self._cached_bytes -= segment.size
            if self._storage.exists(segment.path):
                file = self._storage.open(segment.path)
                file.drop_cache(0, 0)
                file.close()

    def _build_indexes(self) -> None:
        """Build the indexes of sealed segments in steps, until all exist or this thread is woken."""
        while self._index_builder.has_work:
            self._index_builder.step()
            if self._pause_indexing():
                return
            self.space = self._sample()

    def _pause_indexing(self) -> bool:
        """Wait before the next step, longer if more is written meanwhile; return whether this thread was woken.

        Several pauses are one wait: each wake-up of a thread costs 50 us and evicts data of other threads from the
        processor's caches.
        """
        before, count, pauses = self._written_bytes(), 0, 1
        while pauses > count:
            if self.lane.wait_for_wake(_INDEX_PAUSE_S * (pauses - count)):
                return True
            count, written_bytes = pauses, self._written_bytes() - before
            if written_bytes:
                pauses = _index_pauses(written_bytes / (_INDEX_PAUSE_S * count))
        return False


def _index_pauses(bytes_per_s: float) -> int:
    """Return the number of pauses before the next step of an index build, by the write rate of the log."""
    if bytes_per_s > _FULL_BYTES_PER_S:
        return _FULL_INDEX_PAUSES
    return _BUSY_INDEX_PAUSES if bytes_per_s > _BUSY_BYTES_PER_S else _CALM_INDEX_PAUSES
