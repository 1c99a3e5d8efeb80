"""What a running log needs done beside the loop: spares, manifest edits, disk space, page cache, indexes.

Rule 1. Only this thread edits the manifest. A roll is entered after the sealed segment is durable, and the next spare
        is named with it, before its file is made, so that a file id is never used twice.
Rule 2. A full disk is a state, not a failure: publishing has no room, the ballast is given up for one more spare, and
        every run tries again. Any other failed call ends the lane, which is fatal; so does a sync of the directory
        that fails, for whatever reason, when the manifest was replaced in it.
Rule 3. A spare is written with zeros, 4 MiB at a time and slowly, synced every 8 MiB, while the log is quiet; where it
        is busy the rest is only promised (fallocate): a bulk writer beside it took its syncs from 3 to 105-365 ms.
Rule 4. Sealed segments leave the page cache soon, so that its pages go round: writing 64 KiB into pages that were in
        use before costs the loop 9 us, into pages that the machine never touched (or gave back to its host) 220 us.
Rule 5. What the manifest calls removed is deleted (deleting.py) as soon as no reader's manifest names it any more, and
        the loop has let go of what a compaction replaced.
Rule 6. Indexes are derived: one that cannot be built is missing, and nothing else. They are built little by little
        (indexing.py), and with rests wherever the log is written to; until then its segments are found through memory.
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
"""A step takes 1 to 4 ms, and has 2,000 records. Beside a log with little to index a twentieth of the interpreter."""
_BUSY_INDEX_PAUSES = 3
"""Beside a busy one about a tenth of the interpreter, else indexes would fall behind."""
_FULL_BYTES_PER_S = 64 * 1024 * 1024
_FULL_INDEX_PAUSES = 40
"""Beside one written to faster than that, where indexes fall behind in any case, a hundredth."""

_NO_SPACE = {errno.ENOSPC, errno.EDQUOT}


class Spare(NamedTuple):
    """A segment file that is ready to be used: allocated, synced and named in the manifest."""

    file_id: int
    size: int
    """Bytes allocated."""

    file: File


class Space(NamedTuple):
    """What is left of the disk."""

    free_bytes: int
    """Not allocated by anybody, less the ballast where that is not held yet."""

    is_full: bool
    """Whether a spare could not be had, or was had from the ballast."""


def segment_bytes(config: LogConfig, held_bytes: int) -> int:
    """Return the size of the segment that follows `held_bytes` of them: 4, 8, 16, 32, 64, 64 MiB by default."""
    smallest = config.segment_bytes_min
    return min(config.segment_bytes_max, smallest + held_bytes + -held_bytes % smallest)


class Housekeeper:
    """`run` is the function of its lane; the other methods are the loop's."""

    __slots__ = (
        "_adopted",
        "_adoptions",
        "_cached",
        "_cached_bytes",
        "_config",
        "_deleter",
        "_directory",
        "_edits",
        "_has_ballast",
        "_has_spare",
        "_indexing",
        "_is_full",
        "_placements",
        "_rolls",
        "_storage",
        "_written_bytes",
        "faults",
        "lane",
        "manifest",
        "space",
        "spares",
    )

    lane: Lane
    """Set by whoever opens the lane, before its first run."""

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
        """Take over the manifest.

        `written_bytes` tells how much the log has written so far, `touches_of` what the records of a batch name.
        """
        self.manifest = manifest
        self.spares: deque[Spare] = deque()
        """At most one, for the loop to take."""
        self._storage = storage
        self._directory = directory
        self._config = config
        self._deleter = FileDeletion(storage, directory)
        self.faults = self._deleter.faults
        """What went wrong and costs nothing but room, for the loop to take."""
        self._written_bytes = written_bytes
        self._rolls: deque[tuple[Segment, File]] = deque()
        self._edits: deque[Callable[[Manifest], Manifest]] = deque()
        self._placements: deque[Placement] = deque()
        self._adoptions: deque[Adoption] = deque()
        self._adopted: list[Adoption] = []
        self._indexing = BackgroundBuilder(
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
        """Allocate the active segment from `position` on, before the log begins, and return its size.

        Little of it is written with zeros, for a broker that starts is waited for. A full disk allocates nothing.
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

    def seal(self, segment: Segment, file: File) -> None:
        """Enter into the manifest that `segment` is sealed and durable, and close `file`, its writer's."""
        self._rolls.append((segment, file))
        self.lane.wake()

    def close(self) -> None:
        """Give back the files that nobody has taken; its thread has ended."""
        self._indexing.close()
        for _, file in self._rolls:
            file.close()
        for spare in self.spares:
            spare.file.close()

    def edit(self, change: Callable[[Manifest], Manifest]) -> None:
        """Commit a change of the manifest, after those asked for before."""
        self._edits.append(change)
        self.lane.wake()

    def place(self, placement: Placement) -> None:
        """Name a snapshot, after the edits asked for before; `placement` tells how that went."""
        self._placements.append(placement)
        self.lane.wake()

    def adopt(self, adoption: Adoption) -> None:
        """Take over new segments, after what was asked for before; `adoption` tells how that went."""
        self._adoptions.append(adoption)
        self.lane.wake()

    def run(self) -> None:
        """Do all that there is to do. Raises OSError where the disk failed other than by being full."""
        if not self._succeeds(self._go_ahead) and self._release_ballast():
            self._succeeds(self._go_ahead)
        self._succeeds(self._hold_ballast)
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

    def _go_ahead(self) -> None:
        self._enter_rolls()
        if self._edits or self._placements or self._adoptions:
            self._commit_asked()
        if not self._has_spare:
            self._prepare_spare()
        self._delete_removed()

    def _commit_asked(self) -> None:
        """Do what somebody waits for, and say so at once: a spare and indexes may take seconds."""
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
            # It was replaced, though maybe not for good: what is named in it is what readers see by now.
            self.manifest = load(self._storage, self._directory) or self.manifest
            raise

    def _place(self, placement: Placement) -> None:
        """Name a snapshot; one that has no room, or that somebody removed, is refused rather than tried again."""
        try:
            placement.snapshot = place(
                self._storage, self._directory, placement.snapshot, self._committed, placement.source
            )
        except OSError as error:
            if error.errno not in _NO_SPACE | {errno.ENOENT}:
                raise
            placement.error = error
            sweep(self._storage, self._directory)
        placement.is_done = True

    def _adopt(self, adoption: Adoption) -> None:
        """Put new segments in the place of old ones; where that cannot be, nothing has changed."""
        try:
            adopt(self._storage, self._directory, adoption, self._committed)
        except (LogError, OSError) as error:
            if isinstance(error, LogFailed) or (isinstance(error, OSError) and error.errno not in _NO_SPACE):
                raise
            adoption.error = error
        else:
            gone = {one.file_id for one in adoption.inputs}
            self._adopted.append(adoption)
            self._indexing.leave_out(gone)
            self._indexing.add(*(one.at(self._directory) for one in adoption.segments))
        adoption.is_done = True

    def _committed(self, change: Callable[[Manifest], Manifest]) -> Manifest:
        self._commit(change)
        return self.manifest

    def _enter_rolls(self) -> None:
        while self._rolls:
            segment, file = self._rolls[0]
            self._commit(partial(roll, base_offset=segment.next_offset, size=segment.size))
            self._rolls.popleft()
            file.close()
            self._has_spare = False
            self._cached.append(segment)
            self._cached_bytes += segment.size
            self._indexing.add(segment)

    def _prepare_spare(self) -> None:
        if self.manifest.spare is None:
            self._commit(name_spare)
        file_id = self.manifest.spare
        assert file_id is not None
        size = segment_bytes(self._config, self._held_bytes())
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

    def _held_bytes(self) -> int:
        """Bytes of all segments before the spare, the active one taken as full."""
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
        """Wait, and tell whether the log was written to in earnest meanwhile, or is being closed."""
        before = self._written_bytes()
        return self.lane.pause(seconds) or self._written_bytes() - before > _BUSY_BYTES_PER_S * seconds

    def _delete_removed(self) -> None:
        self._adopted = [one for one in self._adopted if not one.is_released]
        in_use = {segment.file_id for one in self._adopted for segment in one.inputs}
        gone = self._deleter.delete(frozenset(self.manifest.removed) - in_use)
        if gone:
            self._commit(partial(forget_removed, file_ids=gone))

    def _ballast_path(self) -> str:
        return f"{self._directory}/ballast"

    def _hold_ballast(self) -> None:
        """Allocate the ballast where it is not held and leaves room for a segment."""
        if self._has_ballast:
            return
        path, size = self._ballast_path(), self._config.ballast_bytes
        held_bytes = self._storage.size(path) if self._storage.exists(path) else 0
        if held_bytes < size:
            wanted_bytes = size - held_bytes + self._config.segment_bytes_max
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
        """Give the ballast's space back to the disk, for settlements; tell whether there was any."""
        path = self._ballast_path()
        if not self._storage.exists(path):
            return False
        self._storage.unlink(path)
        self._has_ballast = False
        return True

    def _sample(self) -> Space:
        held_back = 0 if self._has_ballast else self._config.ballast_bytes
        return Space(max(0, self._storage.free_bytes(self._directory) - held_back), self._is_full)

    def _drop_caches(self) -> None:
        while self._cached_bytes > self._config.cached_bytes_max:
            segment = self._cached.popleft()
            self._cached_bytes -= segment.size
            if self._storage.exists(segment.path):
                file = self._storage.open(segment.path)
                file.drop_cache(0, 0)
                file.close()

    def _build_indexes(self) -> None:
        """Build those of sealed segments, little by little, until they are there or this thread is woken."""
        while self._indexing.has_work:
            self._indexing.step()
            if self._rests():
                return
            self.space = self._sample()

    def _rests(self) -> bool:
        """Wait before the next step, by how much is written meanwhile; tell whether this thread was woken.

        Few waits and not one for each pause: a thread that wakes costs 50 us and more of what others have in the cache.
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
    """Return how often a builder of indexes waits before its next step, beside a log that so much is written to."""
    if bytes_per_s > _FULL_BYTES_PER_S:
        return _FULL_INDEX_PAUSES
    return _BUSY_INDEX_PAUSES if bytes_per_s > _BUSY_BYTES_PER_S else _CALM_INDEX_PAUSES
