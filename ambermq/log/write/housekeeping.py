"""The housekeeping thread of a running log: spares, manifest edits, disk space, page cache, deletions and indexes.

Rule 1. Only this thread edits the manifest. An edit for a roll follows when the sealed segment is durable. The same
        edit names the next spare, before its file is made, so that no file id is used twice.
Rule 2. A full disk is a state, not a failure: publishing has no room, the ballast is released for the manifest and for
        settlements, and every run tries again. Nothing is allocated beforehand then. Any other failed call ends the
        lane, which is fatal. So does every failed sync of the directory after the manifest was replaced.
Rule 3. A spare is made empty, so that a roll is possible at any time, and allocated when the active segment is half
        full. So an idle log takes little space. Its segments return what they do not use when they are sealed.
Rule 4. A spare is filled with zeros slowly, 4 MiB at a time and synced every 8 MiB, while the log is quiet. When
        the log is busy the rest is only allocated (fallocate). A bulk writer in parallel raised the time of the log's
        syncs from 3 ms to 105-365 ms.
Rule 5. Sealed segments leave the page cache soon, so that the kernel reuses their pages. A write of 64 KiB into reused
        pages costs the loop 9 us. Into pages that the machine never used, or returned to its host, it costs 220 us.
        Only the newest one stays until its index is built: a sync of the log waits while the disk reads for the build.
Rule 6. A file on the list `removed` is deleted (file_deletion.py) as soon as no reader's manifest names it. After a
        compaction the loop must have stopped reading it too.
Rule 7. Indexes are derived data: if one cannot be built it is missing, the fault is reported, and nothing fails. They
        are built in small steps (background_builder.py), with pauses while the log is written. A segment without an
        index has its positions in memory.
"""

import errno
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import NamedTuple

from ambermq.log.compaction.adoption import Adoption, adopt
from ambermq.log.config import LogConfig
from ambermq.log.errors import LogError, LogFailed
from ambermq.log.format.segment import Segment, segment_path
from ambermq.log.format.time_range import TimeRange
from ambermq.log.index.background_builder import BackgroundBuilder, IndexFault
from ambermq.log.index.tables import TouchesOf
from ambermq.log.manifest.file_deletion import FileDeletion
from ambermq.log.manifest.manifest import Manifest, commit, forget_removed, load, name_spare, note_end, roll
from ambermq.log.manifest.snapshot_placement import Placement, place, sweep
from ambermq.log.storage.interface import File, Storage
from ambermq.log.storage.worker_threads import Lane
from ambermq.log.write.ballast import Ballast
from ambermq.log.write.spare import Spare, close_spare, segment_bytes

__all__ = ["NO_SPACE", "Housekeeper", "Space"]

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

_FIRST_BYTES = 256 * 1024
"""The size of the active segment of a log with little content, as of an idle virtual host."""
_RESERVE_BYTES = 1024 * 1024
"""Disk space that publishing leaves free besides the ballast: a start works with so much."""
_FILE_SYSTEM_DIVISOR = 64
"""The largest segment takes at most this part of the file system, but at least `segment_bytes_min`."""
NO_SPACE = frozenset({errno.ENOSPC, errno.EDQUOT})
"""The errors of a full disk."""


class Space(NamedTuple):
    """The free space of the disk."""

    free_bytes: int
    """Free bytes of the disk, minus a small reserve, and the ballast if that is not allocated yet."""

    is_full: bool
    """Whether the disk has no room for the ballast, or a call found it full."""

    written_bytes: int
    """The bytes that the log had written before this was measured."""


class Housekeeper:
    """The housekeeping of one log. `run` is the function of its lane; the loop calls the other methods."""

    __slots__ = (
        *("_adoptions", "_ballast", "_cached", "_cached_bytes", "_config", "_directory", "_edits", "_file_deletion"),
        *("_finished_adoptions", "_has_spare", "_index_builder", "_is_full", "_placements", "_reserve_bytes"),
        *("_rolls", "_segment_bytes_max", "_storage", "_unallocated", "_written_bytes", "deletion_count"),
        *("disk_bytes", "faults", "lane", "manifest", "space", "spares"),
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
        ballast: Ballast,
        written_bytes: Callable[[], int],
        touches_of: TouchesOf,
    ) -> None:
        """Own the manifest from now on. `ballast` may be shared with other logs.

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
        self._ballast = ballast
        self.disk_bytes = storage.total_bytes(directory)
        """The size of the file system."""
        part_bytes = self.disk_bytes // _FILE_SYSTEM_DIVISOR
        part_bytes -= part_bytes % config.segment_bytes_min
        self._segment_bytes_max = max(config.segment_bytes_min, min(config.segment_bytes_max, part_bytes))
        self._reserve_bytes = min(config.segment_bytes_min, _RESERVE_BYTES)
        self._unallocated: deque[Spare] = deque()
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
        self._is_full = False
        sweep(storage, directory)
        self.space = self._sample()

    @property
    def index_faults(self) -> tuple[IndexFault, ...]:
        """The sealed segments whose index could not be built."""
        return self._index_builder.faults

    def allocate_active(self, file: File, position: int) -> tuple[int, int]:
        """Allocate the active segment from `position` on, before the log starts; return its size and allocated end.

        Only its first 4 MiB are filled with zeros, so that the broker starts fast. If the disk has little room, nothing
        is allocated: a start must not take what the next start needs.
        """
        size = self._active_bytes()
        zero_bytes = min(_STEP_BYTES, size - position)
        if zero_bytes <= 0 or not self._has_room_for(size - position):
            return max(size, position), position

        def allocate() -> None:
            file.allocate(position, zero_bytes, zero=True)
            if size > position + zero_bytes:
                file.allocate(position + zero_bytes, size - position - zero_bytes, zero=False)
            file.sync()

        if self._succeeds(allocate):
            return size, size
        file.truncate(position)
        return size, position

    def _active_bytes(self) -> int:
        """Return the size of the active segment at a start: a small one while the log has less than one segment."""
        sealed_bytes = sum(segment.size for segment in self.manifest.sealed)
        size = self._segment_bytes(sealed_bytes)
        return size if sealed_bytes >= self._config.segment_bytes_min else min(size, _FIRST_BYTES)

    def _segment_bytes(self, earlier_bytes: int) -> int:
        return min(self._segment_bytes_max, segment_bytes(self._config, earlier_bytes))

    def _has_room_for(self, length: int) -> bool:
        """Return whether the disk has room for `length` bytes, the ballast, and one smallest segment."""
        reserve_bytes = self._ballast.missing_bytes + self._config.segment_bytes_min
        return self._storage.free_bytes(self._directory) >= length + reserve_bytes

    def may_allocate(self, length: int) -> bool:
        """Return whether the disk had room for `length` bytes and one smallest segment when it was measured last."""
        space = self.space
        return not space.is_full and space.free_bytes >= length + self._config.segment_bytes_min

    def allocate_spare(self, spare: Spare) -> None:
        """Request the allocation of a spare, which the loop gives back for it; `spares` has it afterwards."""
        self._unallocated.append(spare)
        self.lane.wake()

    @property
    def has_spare(self) -> bool:
        """Whether `take_spare` returns one."""
        return bool(self.spares or self._unallocated)

    def take_spare(self) -> Spare | None:
        """Return the spare for a roll, allocated or not; None if it is not made yet, or is being allocated."""
        for spares in (self.spares, self._unallocated):
            with suppress(IndexError):
                return spares.popleft()
        return None

    def release_ballast(self) -> bool:
        """Delete the ballast, because a write found the disk full; return whether it existed."""
        self._is_full = True
        self.space = Space(0, is_full=True, written_bytes=self._written_bytes())
        return self._ballast.release()

    def seal(self, segment: Segment, file: File, times: TimeRange | None) -> None:
        """Request the edit that seals `segment`, which is durable; the lane closes its `file` afterwards.

        `times` are those of its records.
        """
        self._rolls.append((segment, file, times))
        self.lane.wake()

    def close(self) -> None:
        """Close the files that the loop has not taken. The thread has ended before."""
        for _, file, _ in self._rolls:
            file.close()
        for spare in (*self.spares, *self._unallocated):
            close_spare(spare)
        self._index_builder.close()

    def note_end(self, end: int) -> None:
        """Commit the end of a log that closes, so that a start misses anything below it. The thread has ended.

        A disk that refuses leaves the old manifest, as a kill would.
        """
        if end > max(self.manifest.start_offset, self.manifest.durable_end):
            with suppress(OSError):
                self._commit(partial(note_end, end=end))

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
        self._is_full = False
        if not self._succeeds(self._do_required_work) and self._ballast.release():
            self._succeeds(self._do_required_work)
            self._is_full = True
        self._succeeds(self._allocate_ballast)
        self._succeeds(self._allocate_spares)
        self.space = self._sample()
        self._drop_caches()
        if not self._is_full:
            self._build_indexes()

    def _allocate_ballast(self) -> None:
        """Allocate the ballast; give it up if publishing has used up its room, for what must go on without."""
        is_allocated = self._ballast.allocate(self._segment_bytes_max)
        if is_allocated and self._storage.free_bytes(self._directory) <= self._reserve_bytes:
            is_allocated = not self._ballast.release()
        if not is_allocated:
            self._is_full = True

    def _allocate_spares(self) -> None:
        """Allocate the spare that the loop has given back for it."""
        with suppress(IndexError):
            while True:
                # The loop may take it back until here.
                self._allocate_spare(self._unallocated.popleft())

    def _allocate_spare(self, spare: Spare) -> None:
        """Allocate a spare; without room for it, return it to the loop as it is."""
        has_room = not self._is_full and self._has_room_for(spare.size)
        try:
            if has_room:
                self._fill(spare.file, spare.size)
                spare.file.sync()
        except OSError as error:
            if error.errno not in NO_SPACE:
                raise
            has_room, self._is_full = False, True
            spare.file.truncate(0)
        self.spares.append(spare._replace(allocated_bytes=spare.size if has_room else 0))

    def _succeeds(self, step: Callable[[], None]) -> bool:
        try:
            step()
        except OSError as error:
            if error.errno not in NO_SPACE:
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
            if error.errno not in NO_SPACE | {errno.ENOENT}:
                raise
            placement.error = error
            sweep(self._storage, self._directory)
        placement.is_done = True

    def _adopt(self, adoption: Adoption) -> None:
        """Replace old segments by new ones. If that fails, the manifest is unchanged."""
        try:
            adopt(self._storage, self._directory, adoption, self._commit_and_return)
        except (LogError, OSError) as error:
            if isinstance(error, LogFailed) or (isinstance(error, OSError) and error.errno not in NO_SPACE):
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
            # The manifest ends the segment there, and every reader too.
            file.truncate(segment.size)
            file.close()
            self._has_spare = False
            self._cached.append(segment)
            self._cached_bytes += segment.size
            self._index_builder.add(segment)

    def _prepare_spare(self) -> None:
        """Make the spare, which is empty: nothing is allocated before the active segment is half full."""
        if self.manifest.spare is None:
            self._commit(name_spare)
        file_id = self.manifest.spare
        assert file_id is not None
        path = segment_path(self._directory, file_id)
        file = self._storage.open(path, create=True)
        try:
            file.sync()
            self._storage.sync_directory(f"{self._directory}/segments")
        except OSError:
            file.close()
            self._storage.unlink(path)
            raise
        self._has_spare = True
        self.spares.append(Spare(file_id, self._segment_bytes(self._earlier_bytes()), file))

    def _earlier_bytes(self) -> int:
        """Return the bytes of all segments before the spare; the active one counts as full."""
        sealed_bytes = sum(segment.size for segment in self.manifest.sealed)
        return sealed_bytes + self._segment_bytes(sealed_bytes)

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

    def _sample(self) -> Space:
        written_bytes = self._written_bytes()
        free_bytes = self._storage.free_bytes(self._directory) - self._ballast.missing_bytes - self._reserve_bytes
        return Space(max(0, free_bytes), self._is_full, written_bytes)

    def _drop_caches(self) -> None:
        # The newest one stays until its index is built, so that the build does not read from the disk beside syncs.
        kept_count = 1 if self._index_builder.has_work and not self._is_full else 0
        while self._cached_bytes > self._config.cached_bytes_max and len(self._cached) > kept_count:
            segment = self._cached.popleft()
            self._cached_bytes -= segment.size
            # A hint to the kernel: a segment that cannot be opened is reported where it is read.
            with suppress(OSError):
                file = self._storage.open(segment.path)
                try:
                    file.drop_cache(0, 0)
                finally:
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
