"""The open log of a running broker. It writes the draft of a tick as a whole and in order.

Rule 1. One thread, the loop, calls everything here. It writes; it never waits for a sync, an allocation or a roll.
Rule 2. `durable_end` is the log's end as it was before the last completed sync began. It never moves back, and never
past `log_end`.
Rule 3. A failed write or sync is fatal: that call and every later one raise LogFailed, and nothing is retried.
Rule 4. A roll needs a spare that is ready. Without one the active segment grows instead.
"""

from collections import deque
from collections.abc import Callable
from contextlib import suppress

from ambermq.log.buffer import Buffer
from ambermq.log.compaction.adoption import Adoption
from ambermq.log.errors import LogFailed
from ambermq.log.format.batch import DraftBatch, encode_batch
from ambermq.log.format.segment import SEGMENT_HEADER_BYTES, Segment, SegmentHeader, segment_path
from ambermq.log.format.time_range import TIME_MAX_US
from ambermq.log.index.background_builder import IndexFault
from ambermq.log.manifest.manifest import Manifest
from ambermq.log.manifest.snapshot_placement import Placement
from ambermq.log.read.tail_reader import TailReader
from ambermq.log.storage.group_commit import GroupCommit, SyncTarget
from ambermq.log.storage.interface import File
from ambermq.log.storage.salt import draw_salt
from ambermq.log.storage.worker_threads import Lane
from ambermq.log.write.active_segment import DROP_BYTES, ActiveSegment, UnsealedSegment
from ambermq.log.write.body_holds import BodyHold, BodyHolds
from ambermq.log.write.draft import Draft
from ambermq.log.write.housekeeping import NO_SPACE, Housekeeper
from ambermq.log.write.open_files import OpenFiles
from ambermq.log.write.spare import Spare, close_spare

__all__ = ["Log"]

_GROWTH_MAX = 4
"""Publishing has no more room when the active segment reaches this multiple of `segment_bytes_max`."""
_HOUSEKEEPING_PERIOD_S = 1.0


class Log:
    """The open log. `Recovery.log()` opens it at the position of the next record; `close` closes it."""

    __slots__ = (
        *("_active", "_body_holds", "_droppable_bytes", "_failure", "_growth_bytes_max", "_half_bytes"),
        *("_housekeeper", "_housekeeping_lane", "_last_us", "_lock", "_spare", "_sync_lane", "_synced_bytes"),
        *("_syncer", "_unsealed", "_unsynced_bytes_max", "_workers", "bodies", "config", "directory", "draft"),
        *("durable_end", "epoch", "is_congested", "is_low", "log_end", "log_id", "low_bytes", "marked_end"),
        *("requested_end", "storage", "written_bytes"),
    )

    def __init__(self, files: OpenFiles) -> None:
        """Continue at the end of `files`, and own its lock, file, bodies and workers.

        Raises OSError if the active segment cannot be allocated, except when the disk is full.
        """
        config, workers = files.config, files.workers
        self.config = config
        self.epoch = files.manifest.epoch
        self.log_id = files.manifest.log_id
        self.draft = Draft(config, next_offset=files.next_offset)
        self.log_end = files.next_offset
        """The offset after the last written record."""
        self.durable_end = files.durable_end
        """The offset after the last durable record."""
        self.requested_end = files.durable_end
        """The end of the part for which a sync was requested."""
        self.bodies = files.bodies
        self.storage = files.storage
        self.directory = files.directory
        self._lock = files.lock
        self._spare: Spare | None = None
        self._unsealed: deque[UnsealedSegment] = deque()
        self.marked_end = 0
        """The durable end in the last written batch."""
        self.written_bytes = 0
        """Bytes written since the log was opened."""
        self._synced_bytes = 0
        """The part of `written_bytes` that is durable."""
        self.is_congested = False
        """Whether writers should wait, because too much is unsynced or written past the active segment's end."""
        self.low_bytes = 0
        """The free space below which publishers are held back. The server sets it."""
        self.is_low = False
        """Whether publishing had less room than that after the last sync."""
        self._droppable_bytes = 0
        """The number of synced bytes at which pages may be dropped from the cache next."""
        self._unsynced_bytes_max = config.unsynced_bytes_max
        self._growth_bytes_max = _GROWTH_MAX * config.segment_bytes_max
        self._last_us = files.now_us
        self._failure: LogFailed | None = None
        self._body_holds = BodyHolds(self._switch_reads)
        self._workers = workers
        self._syncer = GroupCommit(files.durable_end, files.file)
        self._sync_lane = workers.sync_lane(self._syncer)
        self._housekeeper = Housekeeper(
            storage=files.storage,
            directory=files.directory,
            config=config,
            manifest=files.manifest,
            ballast=files.ballast,
            written_bytes=lambda: self.written_bytes,
            touches_of=files.touches_of,
        )
        size, allocated_bytes = self._housekeeper.allocate_active(files.file, files.position)
        self._active = ActiveSegment(
            files.file,
            files.header,
            position=files.position,
            size=size,
            allocated_bytes=allocated_bytes,
            times=files.times,
        )
        self._half_bytes = size // 2
        self._housekeeping_lane = workers.lane(
            "ambermq-housekeeping", self._housekeeper.run, period_s=_HOUSEKEEPING_PERIOD_S
        )
        self._housekeeper.lane = self._housekeeping_lane
        self._housekeeping_lane.wake()

    @property
    def unsynced_bytes(self) -> int:
        """The bytes that are written and not yet durable."""
        return self.written_bytes - self._synced_bytes

    @property
    def is_outgrown(self) -> bool:
        """Whether writers should wait for a spare, because too much is written past the active segment's end."""
        if self._spare or self._housekeeper.spares:
            # The next write rolls. If writers waited here, no write would come.
            return False
        active = self._active
        return active.position - active.size > self.config.segment_bytes_max

    @property
    def is_marked(self) -> bool:
        """Whether a batch on the disk carries the current durable end."""
        return self.marked_end >= self.durable_end

    def fileno(self) -> int:
        """Return a descriptor that is readable when `completed` has something to process."""
        return self._workers.fileno()

    def write(self, now_us: int) -> bool:
        """Write the whole draft, in one call if it fits into the active segment; return whether there was any.

        Raises LogFailed.
        """
        if self._failure:
            raise self._failure
        draft = self.draft
        batches = draft.take()
        if not batches:
            return False
        low_us, high_us = draft.time_min_us, draft.time_max_us
        draft.time_us, draft.time_min_us, draft.time_max_us = None, TIME_MAX_US, -TIME_MAX_US
        self._last_us = now_us
        active, bodies = self._active, self.bodies
        if now_us > active.old_us:
            active = self._active_by_age(now_us)
        position = active.position or SEGMENT_HEADER_BYTES
        buffers: list[Buffer] = []
        for batch in batches:
            if position + batch.size > active.size and self._can_roll(len(buffers)):
                if buffers:
                    # Also the times of the batches that follow: a range may be wider.
                    active.widen(low_us, high_us)
                    self._write_buffers(buffers, position, batch.base_offset)
                    buffers = []
                active, position = self._roll(now_us), SEGMENT_HEADER_BYTES
            buffers += encode_batch(batch, salt_crc=active.salt_crc, durable_end=self.durable_end, epoch=self.epoch)
            # Noted before the write: a write that fails ends the log, so no later call uses the note.
            if batch.runs or position >= bodies.next_position:
                bodies.note_batch(batch.base_offset, position, batch.runs)
            position += batch.size
        active.time_min_us = min(active.time_min_us, low_us)
        active.time_max_us = max(active.time_max_us, high_us)
        self._write_buffers(buffers, position, draft.next_offset)
        return True

    def write_mark(self, now_us: int) -> bool:
        """Write an empty batch with the current durable end unless one carries it already; return whether it wrote.

        The batch is durable after the next sync, which the caller requests. Raises LogFailed.
        """
        if self._failure:
            raise self._failure
        if self.is_marked:
            return False
        active, end = self._active, self.log_end
        mark = DraftBatch(end, now_us)
        buffers = encode_batch(mark, salt_crc=active.salt_crc, durable_end=self.durable_end, epoch=self.epoch)
        self._write_buffers(buffers, (active.position or SEGMENT_HEADER_BYTES) + mark.size, end)
        return True

    def request_sync(self) -> None:
        """Request a sync of everything written. Requests during a sync share the next one.

        Raises LogFailed, also if no sync can begin.
        """
        if self._failure:
            raise self._failure
        written_bytes = self.written_bytes
        if self._syncer.target.written_bytes == written_bytes:
            return
        earlier: tuple[tuple[File, int], ...] = ()
        if self._unsealed:
            earlier = tuple([(unsealed.file, unsealed.written_bytes) for unsealed in self._unsealed])
        self.requested_end = self.log_end
        self._syncer.target = SyncTarget(self.log_end, written_bytes, self._active.file, earlier)
        self._sync_lane.wake()
        if self._sync_lane.error:
            self._check_lanes()

    def completed(self) -> bool:
        """Process finished background work: syncs, cold reads, spares. Return whether a sync or a read has finished.

        Raises LogFailed if a sync or the housekeeping failed.
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
            self._drop_cached_pages(synced_bytes)
        while self._unsealed and self._unsealed[0].written_bytes <= synced_bytes:
            sealed = self._unsealed.popleft()
            self._housekeeper.seal(sealed.segment, sealed.file, sealed.times)
        if self._spare is None and self._housekeeper.spares:
            self._spare = self._housekeeper.spares.popleft()
        spare, active = self._spare, self._active
        if spare is not None and not spare.allocated_bytes and self._half_bytes <= active.position < active.size:
            self._allocate_spare(spare)
        is_behind = self.written_bytes - synced_bytes >= self._unsynced_bytes_max
        self.is_congested = is_behind or (self._spare is None and self.is_outgrown)
        space = self._housekeeper.space
        # Without what is allocated beforehand: only where that is little the room is computed, after each sync.
        unallocated_bytes = space.free_bytes - self.written_bytes + space.written_bytes
        is_short = space.is_full or unallocated_bytes < self.low_bytes or active.position > self._growth_bytes_max
        self.is_low = is_short and self.room_bytes() < self.low_bytes
        return has_moved or has_bodies

    def room_bytes(self) -> int:
        """Return the bytes that publishing may still write. Settlements have no limit."""
        active, space = self._active, self._housekeeper.space
        if space.is_full or active.position > self._growth_bytes_max:
            return 0
        room_bytes, left = space.free_bytes, active.allocated_bytes - active.position
        # No calls here: this runs after each sync.
        if left > 0:
            room_bytes += left
        else:
            room_bytes -= self.written_bytes - space.written_bytes
        if self._spare:
            room_bytes += self._spare.allocated_bytes
        return 0 if room_bytes < 0 else room_bytes  # noqa: FURB136

    @property
    def disk_bytes(self) -> int:
        """The size of the file system, in bytes. Limits of free space are at most a part of it."""
        return self._housekeeper.disk_bytes

    @property
    def active_bytes(self) -> int:
        """The bytes that the active segment holds."""
        return self._active.position

    @property
    def is_full(self) -> bool:
        """Whether the disk has no room for the ballast, or a call found it full."""
        return self._housekeeper.space.is_full

    @property
    def manifest(self) -> Manifest:
        """The manifest after its last edit."""
        return self._housekeeper.manifest

    @property
    def deletion_count(self) -> int:
        """How often the housekeeping has deleted the files that are not needed any more."""
        return self._housekeeper.deletion_count

    def request_deletion(self) -> None:
        """Request a deletion of the files that are not needed any more; those that a reader uses stay."""
        self._housekeeping_lane.wake()

    def open_lane(self, name: str, run: Callable[[], None]) -> Lane:
        """Open a lane that runs `run` in the background each time it is woken. It ends with the log."""
        return self._workers.lane(name, run)

    def place_snapshot(self, placement: Placement) -> None:
        """Request a name for a snapshot whose file is written. Everything below its end must be durable."""
        assert placement.snapshot.end <= self.durable_end
        self._housekeeper.place(placement)

    def adopt(self, adoption: Adoption) -> None:
        """Request the adoption of a compaction's checked segments. The caller then calls `switch_segments`."""
        self._housekeeper.adopt(adoption)

    def switch_segments(self, adoption: Adoption) -> None:
        """Read bodies from the new segments, as soon as no hold needs the old ones."""
        self._body_holds.add(adoption)

    def hold_bodies(self) -> BodyHold:
        """Return a hold: until its release every body that is in the log now stays readable, despite compactions."""
        return self._body_holds.take()

    def _switch_reads(self, adoption: Adoption) -> None:
        """Switch the reads of bodies to the new segments; the old ones may be deleted then."""
        directory = self.directory
        old_paths = {segment_path(directory, one.file_id) for one in adoption.inputs}
        self.bodies.replace(old_paths, [one.at(directory) for one in adoption.segments])
        adoption.is_released = True

    @property
    def awaits_spare(self) -> bool:
        """Whether a seal is impossible only because the spare is being made or allocated."""
        return self._spare is None and not self._housekeeper.has_spare and not self.is_full

    def seal_active(self, now_us: int) -> bool:
        """Roll to the next segment if a spare is ready and this one has a record; return whether it rolled.

        The whole draft must be written before.
        """
        assert not self.draft.record_count
        if self._failure or not self._can_roll():
            return False
        self._roll(now_us)
        return True

    def tail_reader(self, first: int) -> TailReader:
        """Return a reader of the durable batches from offset `first` on, for use in another thread."""
        return self.bodies.tail_reader(first, end=self.durable_end, size=self._active.position)

    def take_faults(self) -> list[str]:
        """Return the harmless faults of the housekeeping since the last call, as text for the broker's log."""
        faults = self._housekeeper.faults
        return [faults.popleft() for _ in range(len(faults))]

    @property
    def index_faults(self) -> tuple[IndexFault, ...]:
        """The sealed segments whose index could not be built, and why. They are served without one."""
        return self._housekeeper.index_faults

    def edit_manifest(self, change: Callable[[Manifest], Manifest]) -> None:
        """Request an edit of the manifest; the housekeeping thread, which alone edits it, commits it."""
        self._housekeeper.edit(change)

    def fail(self, error: Exception) -> None:
        """Fail the log after an error of its caller, because the draft may be incomplete; write nothing any more.

        Every later call raises LogFailed. A log that has failed already keeps its own failure.
        """
        if not self._failure:
            self._failure = LogFailed(f"the log stopped because its draft may be incomplete: {error!r}")

    def close(self) -> None:
        """Write and sync the draft, mark it, and release threads, files and lock.

        A failed log only releases them. Raises LogFailed if the last write or sync fails.
        """
        self._workers.close()
        self.bodies.close()
        try:
            if not self._failure:
                self._finish()
        finally:
            for unsealed in self._unsealed:
                unsealed.file.close()
            self._active.file.close()
            if self._spare:
                close_spare(self._spare)
            self._housekeeper.close()
            self._lock.release()

    def _drop_cached_pages(self, synced_bytes: int) -> None:
        """Drop bytes synced a while ago from the page cache; `synced_bytes` of the written bytes are synced."""
        active = self._active
        unsynced_bytes = self.written_bytes - synced_bytes
        left_bytes = active.drop_cached_pages(active.position - unsynced_bytes - self.config.cached_bytes_max)
        self._droppable_bytes = synced_bytes + DROP_BYTES - left_bytes

    def _check_lanes(self) -> None:
        for operation, lane in (("sync", self._sync_lane), ("housekeeping", self._housekeeping_lane)):
            if lane.error:
                raise self._set_failure(operation, lane.error) from lane.error

    def _finish(self) -> None:
        # The threads have ended, so a failed sync is known here and is not repeated.
        self._check_lanes()
        self.write(self._last_us)
        self._sync_here()
        if self.write_mark(self._last_us):
            self._sync_here()
        if self._active.position:
            # A stopped broker keeps no space that it does not use.
            with suppress(OSError):
                self._active.file.truncate(self._active.position)
        if not self._unsealed:
            self._housekeeper.note_end(self.durable_end)

    def _sync_here(self) -> None:
        """Sync in the loop's thread, when the log closes."""
        try:
            for unsealed in self._unsealed:
                unsealed.file.datasync()
            self._active.file.datasync()
        except OSError as error:
            raise self._set_failure("sync", error) from error
        self.durable_end = self.log_end

    def _can_roll(self, batch_count: int = 0) -> bool:
        """Return whether a spare is ready and the active segment has a record, or `batch_count` batches to write.

        A mark is no record: a segment of marks alone would have an empty range of offsets.
        """
        if self._spare is None:
            self._spare = self._housekeeper.take_spare()
        return self._spare is not None and (batch_count > 0 or self.log_end > self._active.header.base_offset)

    def _active_by_age(self, now_us: int) -> ActiveSegment:
        """Return the segment to write to: the next one if the active one is too old."""
        active = self._active
        if not active.old_us:
            active.old_us = now_us + 1000 * self.config.segment_age_ms_max
        elif self._can_roll():
            return self._roll(now_us)
        return active

    def _roll(self, now_us: int) -> ActiveSegment:
        """Make the spare active and return it. The old active segment is sealed when it is durable."""
        old, spare = self._active, self._spare
        assert spare is not None
        path = segment_path(self.directory, old.header.file_id)
        segment = Segment(old.header.file_id, old.header.base_offset, self.log_end, old.position, path)
        self._unsealed.append(UnsealedSegment(segment, old.file, self.written_bytes, old.times))
        header = SegmentHeader(draw_salt(), self.log_id, spare.file_id, self.log_end, self.epoch)
        self._active = ActiveSegment(
            spare.file, header, position=0, size=spare.size, allocated_bytes=spare.allocated_bytes
        )
        self._half_bytes = spare.size // 2
        self._active.old_us = now_us + 1000 * self.config.segment_age_ms_max
        self._spare = None
        path = segment_path(self.directory, spare.file_id)
        self.bodies.begin(base_offset=self.log_end, path=path, salt_crc=self._active.salt_crc)
        return self._active

    def _write_buffers(self, buffers: list[Buffer], position: int, log_end: int) -> None:
        """Write encoded batches up to `position` of the active segment; the log then ends at `log_end`."""
        active = self._active
        start = active.position
        if not start:
            buffers.insert(0, active.header.encode())
        try:
            active.file.write(buffers, start)
        except OSError as error:
            self._write_again(active.file, buffers, start, error)
        active.position = position
        self.written_bytes += position - start
        self.log_end = log_end
        is_behind = self.written_bytes - self._synced_bytes >= self._unsynced_bytes_max
        self.is_congested = is_behind or (self._spare is None and self.is_outgrown)
        self.marked_end = self.durable_end

    def _write_again(self, file: File, buffers: list[Buffer], start: int, error: OSError) -> None:
        """Repeat a write that found the disk full in the space of the ballast. Raises LogFailed if that fails too.

        Nothing of the write was synced, and it has the same bytes, so the repetition hides no failure.
        """
        if error.errno not in NO_SPACE or not self._housekeeper.release_ballast():
            raise self._set_failure("write", error) from error
        try:
            file.write(buffers, start)
        except OSError as repeated:
            raise self._set_failure("write", repeated) from repeated

    def _allocate_spare(self, spare: Spare) -> None:
        """Return the spare to the housekeeping for its allocation, since the active segment is half full."""
        if self._housekeeper.may_allocate(spare.size):
            self._spare = None
            self._housekeeper.allocate_spare(spare)

    def _set_failure(self, operation: str, error: Exception) -> LogFailed:
        path = segment_path(self.directory, self._active.header.file_id)
        self._failure = LogFailed(f"{operation} failed at position {self._active.position} of {path}: {error}")
        return self._failure
