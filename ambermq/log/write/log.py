"""The open log of a running broker: what the commands of a tick have drafted goes in whole, and in order.

Rule 1. One thread, the loop, calls everything here. It writes; it never waits for a sync, an allocation or a roll.
Rule 2. `durable_end` is the end as it was before the sync that returned; it never moves back, and never past `log_end`.
Rule 3. A failed write or sync is fatal: LogFailed then, and from every later call; nothing is tried again.
Rule 4. A roll goes to the spare, which lies ready; where it does not, the active segment grows instead.
"""

from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from ambermq.log.buffer import Buffer
from ambermq.log.compaction.adoption import Adoption
from ambermq.log.errors import LogFailed
from ambermq.log.format.batch import DraftBatch, encode_batch
from ambermq.log.format.segment import SEGMENT_HEADER_BYTES, Segment, SegmentHeader, segment_path
from ambermq.log.manifest.manifest import Manifest
from ambermq.log.manifest.snapshot_placement import Placement
from ambermq.log.read.tail_reader import TailReader
from ambermq.log.storage.group_commit import GroupCommit, SyncTarget
from ambermq.log.storage.interface import File
from ambermq.log.storage.salt import draw_salt
from ambermq.log.storage.worker_threads import Lane
from ambermq.log.write.body_holds import BodyHold, BodyHolds
from ambermq.log.write.draft import Draft
from ambermq.log.write.housekeeping import Housekeeper, Spare
from ambermq.log.write.open_files import OpenFiles

__all__ = ["Log"]

_GROWTH_MAX = 4
"""Publishing has no room any more when the active segment has grown to so many times the largest size."""
_HOUSEKEEPING_PERIOD_S = 1.0
_PAGE_BYTES = 4096
_DROP_BYTES = 1024 * 1024


class _Active:
    """The segment that is written to."""

    __slots__ = ("dropped_position", "file", "header", "old_us", "position", "salt_crc", "size")

    def __init__(self, file: File, header: SegmentHeader, *, position: int, size: int) -> None:
        """Go on writing at `position`, 0 where not even `header` is written; `size` bytes are allocated."""
        self.old_us = 0
        """When it is to be rolled away from for its age; 0 before this process has written a record to it."""
        self.dropped_position = 0
        """What lies before has left the page cache."""
        self.file = file
        self.header = header
        self.salt_crc = header.salt_crc
        self.position = position
        self.size = size


class _Sealing(NamedTuple):
    """A segment that is rolled away from and not yet known to be durable."""

    segment: Segment
    file: File
    written_bytes: int


class Log:
    """Opened by `Recovery.log()`, which says where the next record goes; closed by `close`."""

    __slots__ = (
        "_active",
        "_droppable_bytes",
        "_failure",
        "_growth_bytes_max",
        "_holds",
        "_housekeeper",
        "_housekeeping_lane",
        "_last_us",
        "_lock",
        "_sealing",
        "_spare",
        "_sync_lane",
        "_synced_bytes",
        "_syncer",
        "_unsynced_bytes_max",
        "_workers",
        "bodies",
        "config",
        "directory",
        "draft",
        "durable_end",
        "epoch",
        "is_congested",
        "log_end",
        "log_id",
        "marked_end",
        "requested_end",
        "storage",
        "written_bytes",
    )

    def __init__(self, opening: OpenFiles) -> None:
        """Go on where `opening` ends, and own its lock, file, bodies and workers from now on.

        Raises OSError where the active segment cannot be allocated, other than for want of space.
        """
        config, workers = opening.config, opening.workers
        self.config = config
        self.epoch = opening.manifest.epoch
        self.log_id = opening.manifest.log_id
        self.draft = Draft(config, next_offset=opening.next_offset)
        self.log_end = opening.next_offset
        """The offset after everything written."""
        self.durable_end = opening.durable_end
        """The offset after everything that a sync has made durable."""
        self.requested_end = opening.durable_end
        """The offset after everything that a sync was asked for."""
        self.bodies = opening.bodies
        self.storage = opening.storage
        self.directory = opening.directory
        self._lock = opening.lock
        self._spare: Spare | None = None
        self._sealing: deque[_Sealing] = deque()
        self.marked_end = 0
        """The durable end that the last batch carries."""
        self.written_bytes = 0
        """Bytes written since it was opened."""
        self._synced_bytes = 0
        """As many of them are known to be durable."""
        self.is_congested = False
        """Whether so much is unsynced, or written ahead of the next segment, that writers should wait."""
        self._droppable_bytes = 0
        """When so many are, there may be pages to drop from the cache."""
        self._unsynced_bytes_max = config.unsynced_bytes_max
        self._growth_bytes_max = _GROWTH_MAX * config.segment_bytes_max
        self._last_us = opening.now_us
        self._failure: LogFailed | None = None
        self._holds = BodyHolds(self._take_over)
        self._workers = workers
        self._syncer = GroupCommit(opening.durable_end, opening.file)
        self._sync_lane = workers.sync_lane(self._syncer)
        self._housekeeper = Housekeeper(
            storage=opening.storage,
            directory=opening.directory,
            config=config,
            manifest=opening.manifest,
            written_bytes=lambda: self.written_bytes,
            touches_of=opening.touches_of,
        )
        size = self._housekeeper.allocate_active(opening.file, opening.position)
        self._active = _Active(opening.file, opening.header, position=opening.position, size=size)
        self._housekeeping_lane = workers.lane(
            "ambermq-housekeeping", self._housekeeper.run, period_s=_HOUSEKEEPING_PERIOD_S
        )
        self._housekeeper.lane = self._housekeeping_lane
        self._housekeeping_lane.wake()

    @property
    def unsynced_bytes(self) -> int:
        """Bytes written and not yet known to be durable."""
        return self.written_bytes - self._synced_bytes

    @property
    def is_outgrown(self) -> bool:
        """Whether so much was written past the active segment's end that writers should wait for the next spare."""
        if self._spare or self._housekeeper.spares:
            # The next write rolls: without one, nothing would ever change.
            return False
        active = self._active
        return active.position - active.size > self.config.segment_bytes_max

    @property
    def is_marked(self) -> bool:
        """Whether a batch on the disk carries the present durable end."""
        return self.marked_end >= self.durable_end

    def fileno(self) -> int:
        """Return a descriptor that is readable when `completed` has something to take."""
        return self._workers.fileno()

    def write(self, now_us: int) -> bool:
        """Write all that is drafted, in one call as long as it fits into the active segment; tell if there was any.

        Raises LogFailed.
        """
        if self._failure:
            raise self._failure
        batches = self.draft.take()
        if not batches:
            return False
        self._last_us = now_us
        active, bodies = self._active, self.bodies
        if now_us > active.old_us:
            active = self._aged(now_us)
        position = active.position or SEGMENT_HEADER_BYTES
        buffers: list[Buffer] = []
        for batch in batches:
            if position + batch.size > active.size and self._can_roll(len(buffers)):
                if buffers:
                    self._put(buffers, position, batch.base_offset)
                    buffers = []
                active, position = self._roll(now_us), SEGMENT_HEADER_BYTES
            buffers += encode_batch(batch, salt_crc=active.salt_crc, durable_end=self.durable_end, epoch=self.epoch)
            # A write that fails ends the log, so that nobody asks for what was noted before it.
            bodies.wrote(batch.base_offset, position, batch.runs)
            position += batch.size
        self._put(buffers, position, self.draft.next_offset)
        return True

    def write_mark(self, now_us: int) -> bool:
        """Write an empty batch, where no batch yet carries the present durable end, and tell whether it did.

        It is durable after the next sync, which is to be asked for. Raises LogFailed.
        """
        if self._failure:
            raise self._failure
        if self.is_marked:
            return False
        active, end = self._active, self.log_end
        mark = DraftBatch(end, now_us)
        buffers = encode_batch(mark, salt_crc=active.salt_crc, durable_end=self.durable_end, epoch=self.epoch)
        self._put(buffers, (active.position or SEGMENT_HEADER_BYTES) + mark.size, end)
        return True

    def request_sync(self) -> None:
        """Ask for what is written to be made durable; while a sync runs, all further requests ride the next one.

        Raises LogFailed, also where no sync can begin.
        """
        if self._failure:
            raise self._failure
        written_bytes = self.written_bytes
        if self._syncer.target.written_bytes == written_bytes:
            return
        earlier: tuple[tuple[File, int], ...] = ()
        if self._sealing:
            earlier = tuple([(sealing.file, sealing.written_bytes) for sealing in self._sealing])
        self.requested_end = self.log_end
        self._syncer.target = SyncTarget(self.log_end, written_bytes, self._active.file, earlier)
        self._sync_lane.wake()
        if self._sync_lane.error:
            self._check_lanes()

    def completed(self) -> bool:
        """Take what ended beside the loop: syncs, cold reads, spares; tell whether the first or second did.

        Raises LogFailed where a sync or the housekeeping failed.
        """
        if self._failure:
            raise self._failure
        self._workers.collect()
        if self._sync_lane.error or self._housekeeping_lane.error:
            self._check_lanes()
        has_bodies = not self.bodies.is_idle and self.bodies.completed()
        synced = self._syncer.synced
        has_moved = synced.end > self.durable_end
        if has_moved:
            assert synced.end <= self.log_end
            self.durable_end = synced.end
        self._synced_bytes = synced_bytes = synced.written_bytes
        if synced_bytes >= self._droppable_bytes:
            self._let_pages_go(synced_bytes)
        while self._sealing and self._sealing[0].written_bytes <= synced_bytes:
            sealed = self._sealing.popleft()
            self._housekeeper.seal(sealed.segment, sealed.file)
        if self._spare is None and self._housekeeper.spares:
            self._spare = self._housekeeper.spares.popleft()
        is_behind = self.written_bytes - synced_bytes >= self._unsynced_bytes_max
        self.is_congested = is_behind or (self._spare is None and self.is_outgrown)
        return has_moved or has_bodies

    def room_bytes(self) -> int:
        """Return how many bytes publishing may still write; settlements may always write."""
        active, space = self._active, self._housekeeper.space
        if space.is_full or active.position > self._growth_bytes_max:
            return 0
        free_bytes = active.size - active.position + space.free_bytes
        if self._spare:
            free_bytes += self._spare.size
        return max(0, free_bytes)

    @property
    def manifest(self) -> Manifest:
        """The manifest as it was edited last."""
        return self._housekeeper.manifest

    def open_lane(self, name: str, run: Callable[[], None]) -> Lane:
        """Let `run` run beside the loop each time the lane is woken; it ends with the log."""
        return self._workers.lane(name, run)

    def place_snapshot(self, placement: Placement) -> None:
        """Name a snapshot whose file is written beside the loop; all below its end must be durable."""
        assert placement.snapshot.end <= self.durable_end
        self._housekeeper.place(placement)

    def adopt(self, adoption: Adoption) -> None:
        """Take over a compaction's new segments, which were checked; ask `adopted` once it is done."""
        self._housekeeper.adopt(adoption)

    def adopted(self, adoption: Adoption) -> None:
        """Read bodies from the new segments from now on, or from when nobody holds what has gone."""
        self._holds.add(adoption)

    def hold(self) -> BodyHold:
        """Let every body that is in the log now be read until the hold is released, whatever is compacted meanwhile."""
        return self._holds.take()

    def _take_over(self, adoption: Adoption) -> None:
        """Read bodies from the new segments from now on; the old ones may be deleted."""
        directory = self.directory
        gone = {segment_path(directory, one.file_id) for one in adoption.inputs}
        self.bodies.replace(gone, [one.at(directory) for one in adoption.segments])
        adoption.is_released = True

    def seal_active(self, now_us: int) -> bool:
        """Go on in the next segment, where it lies ready and this one holds a record; tell whether it does.

        All that is drafted must be written.
        """
        assert not self.draft.record_count
        if self._failure or not self._can_roll():
            return False
        self._roll(now_us)
        return True

    def stretch(self, first: int) -> TailReader:
        """Return where the batches from offset `first` on can be read again beside the loop, the durable ones alone."""
        return self.bodies.stretch(first, end=self.durable_end, size=self._active.position)

    def take_faults(self) -> list[str]:
        """Return what went wrong beside the loop since the last time and costs nothing but room, for a person."""
        faults = self._housekeeper.faults
        return [faults.popleft() for _ in range(len(faults))]

    def edit_manifest(self, change: Callable[[Manifest], Manifest]) -> None:
        """Commit a change of the manifest beside the loop, which alone may edit it."""
        self._housekeeper.edit(change)

    def give_up(self, error: Exception) -> None:
        """Write nothing any more, not even what is drafted: whoever drafts has failed. LogFailed from every later call.

        A log that has failed by itself stays as it is.
        """
        if not self._failure:
            self._failure = LogFailed(f"given up, what is drafted may be half of something: {error!r}")

    def close(self) -> None:
        """Write and sync what is drafted, mark it, and give back threads, files and lock.

        A log that has failed only gives back. Raises LogFailed where the last write or sync fails.
        """
        self._workers.close()
        self.bodies.close()
        try:
            if not self._failure:
                self._finish()
        finally:
            for sealing in self._sealing:
                sealing.file.close()
            self._active.file.close()
            if self._spare:
                self._spare.file.close()
            self._housekeeper.close()
            self._lock.release()

    def _let_pages_go(self, synced_bytes: int) -> None:
        """Drop what was synced a while ago from the page cache; `synced_bytes` of all that was written are.

        Its pages are written again next, still warm: 10 us for 64 KiB instead of 26 with pages that go round by whole
        segments, and 220 with pages that the machine had given back to its host.
        """
        active = self._active
        unsynced_bytes = self.written_bytes - synced_bytes
        end = active.position - unsynced_bytes - self.config.cached_bytes_max & -_PAGE_BYTES
        length = end - active.dropped_position
        if length >= _DROP_BYTES:
            active.file.drop_cache(active.dropped_position, length)
            active.dropped_position, length = end, 0
        self._droppable_bytes = synced_bytes + _DROP_BYTES - length

    def _check_lanes(self) -> None:
        for operation, lane in (("sync", self._sync_lane), ("housekeeping", self._housekeeping_lane)):
            if lane.error:
                raise self._fail(operation, lane.error) from lane.error

    def _finish(self) -> None:
        # The threads have ended, so no sync that failed a moment ago is repeated here.
        self._check_lanes()
        self.write(self._last_us)
        self._sync_here()
        if self.write_mark(self._last_us):
            self._sync_here()

    def _sync_here(self) -> None:
        """Sync on the loop itself, at the very end."""
        try:
            for sealing in self._sealing:
                sealing.file.datasync()
            self._active.file.datasync()
        except OSError as error:
            raise self._fail("sync", error) from error
        self.durable_end = self.log_end

    def _can_roll(self, waiting: int = 0) -> bool:
        """Tell whether a spare lies ready and the active segment holds a record, or will with `waiting` batches.

        A mark is none: a segment of marks alone would begin where the next one does, and answer for no offset.
        """
        if self._spare is None and self._housekeeper.spares:
            self._spare = self._housekeeper.spares.popleft()
        return self._spare is not None and (waiting > 0 or self.log_end > self._active.header.base_offset)

    def _aged(self, now_us: int) -> _Active:
        """Return the segment to write to: the next one where the active one is old."""
        active = self._active
        if not active.old_us:
            active.old_us = now_us + 1000 * self.config.segment_age_ms_max
        elif self._can_roll():
            return self._roll(now_us)
        return active

    def _roll(self, now_us: int) -> _Active:
        """Go on in the spare; what was active is sealed when it is durable."""
        old, spare = self._active, self._spare
        assert spare is not None
        path = segment_path(self.directory, old.header.file_id)
        segment = Segment(old.header.file_id, old.header.base_offset, self.log_end, old.position, path)
        self._sealing.append(_Sealing(segment, old.file, self.written_bytes))
        header = SegmentHeader(draw_salt(), self.log_id, spare.file_id, self.log_end, self.epoch)
        self._active = _Active(spare.file, header, position=0, size=spare.size)
        self._active.old_us = now_us + 1000 * self.config.segment_age_ms_max
        self._spare = None
        path = segment_path(self.directory, spare.file_id)
        self.bodies.begin(base_offset=self.log_end, path=path, salt_crc=self._active.salt_crc)
        return self._active

    def _put(self, buffers: list[Buffer], position: int, log_end: int) -> None:
        """Write encoded batches, up to `position` of the active segment; the log ends at `log_end` then."""
        active = self._active
        start = active.position
        if not start:
            buffers.insert(0, active.header.encode())
        try:
            active.file.write(buffers, start)
        except OSError as error:
            raise self._fail("write", error) from error
        active.position = position
        self.written_bytes += position - start
        self.log_end = log_end
        is_behind = self.written_bytes - self._synced_bytes >= self._unsynced_bytes_max
        self.is_congested = is_behind or (self._spare is None and self.is_outgrown)
        self.marked_end = self.durable_end

    def _fail(self, operation: str, error: Exception) -> LogFailed:
        path = segment_path(self.directory, self._active.header.file_id)
        self._failure = LogFailed(f"{operation} failed at position {self._active.position} of {path}: {error}")
        return self._failure
