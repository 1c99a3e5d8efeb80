"""The recovery of a log at its opening, after a clean stop or a crash.

    open      lock the directory, load the manifest, survey the last segments (tail_survey.py): D, the valid end, damage
    batches   yield every batch in order, up to the valid end; the engine folds them
    log       copy [D, valid end) into a new segment and sync it; edit the manifest once; return the open log

Rule 1. Nothing is written in place, and bytes that may be only in the page cache are not trusted: the tail is copied
and synced before any client sees it. The old segment is sealed at D.
Rule 2. Every step can be interrupted and repeated. Before the manifest edit the old manifest is valid and no manifest
names the new file. After the edit nothing remains to do.
Rule 3. What the manifest or an index knows must be there (presence.py), although a start reads sealed segments only
behind its snapshot. Otherwise the log is damaged.
Rule 4. The new epoch's offsets begin at a multiple of 2^20 above every offset that was ever seen, so none is used
twice.
Rule 4. A start takes no more of a full disk than its last end returned. Before it writes, it returns what earlier
segments have allocated and not used, and, if the disk is nearly full, deletes unneeded files and the ballast. A start
that fails before the manifest edit removes its segment.

Cost: unsealed segments (two, 128 MiB at most by default) are walked twice, because their end must be known before their
first batch is yielded. Sealed segments are walked once, during the fold: they are durable as a whole, and any fault in
them is damage.
"""

import secrets
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Final

from ambermq.log.config import LogConfig
from ambermq.log.errors import DamageError, LogError, LogFailed
from ambermq.log.format.batch import KEPT, Batch
from ambermq.log.format.segment import SEGMENT_HEADER_BYTES, SegmentHeader, segment_path
from ambermq.log.format.time_range import union
from ambermq.log.index.tables import TouchesOf, no_touches
from ambermq.log.manifest import manifest as manifests
from ambermq.log.manifest.file_deletion import FileDeletion
from ambermq.log.manifest.manifest import Manifest, SealedSegment, manifest_path, segments_path
from ambermq.log.manifest.snapshot_placement import sweep
from ambermq.log.manifest.writer_lock import lock_path
from ambermq.log.read.body_store import BodyStore
from ambermq.log.recovery.presence import check_presence
from ambermq.log.segments.batch_copy import copy_batch
from ambermq.log.segments.batch_walk import BatchWalk
from ambermq.log.segments.segment_reader import SegmentReader, is_unwritten, open_sealed, walk_whole
from ambermq.log.segments.tail_survey import EPOCH_OFFSETS, TailSurvey, survey
from ambermq.log.storage.interface import File, Lock, Storage
from ambermq.log.storage.salt import draw_salt
from ambermq.log.storage.worker_threads import ThreadWorkers, Workers
from ambermq.log.write.ballast import Ballast
from ambermq.log.write.log import Log
from ambermq.log.write.open_files import OpenFiles

__all__ = ["Recovery", "free_file_id", "lock_path", "restoring_path"]

Progress = Callable[[int, int], None]
"""Called with the bytes scanned so far and the total."""

_PROGRESS_BYTES: Final = 4 << 20
_PIECE_BYTES: Final = 1 << 20
_START_BYTES: Final = 1 << 20
"""A start needs less than this beside the tail that it copies: a header, two manifests and the first records."""


def restoring_path(directory: str) -> str:
    """Return the path of the file that marks an unfinished restore: without a manifest, no new log may be created.

    Beside a manifest the file has no meaning.
    """
    return f"{directory}/RESTORING"


def free_file_id(storage: Storage, directory: str, file_id: int) -> int:
    """Return the first file id from `file_id` on that no existing file uses."""
    while storage.exists(segment_path(directory, file_id)):
        file_id += 1
    return file_id


class Recovery:
    """A locked and surveyed directory. The caller calls `batches` and then `log`, or `close` to change nothing."""

    def __init__(
        self,
        storage: Storage,
        directory: str,
        config: LogConfig,
        *,
        lock: Lock,
        manifest: Manifest,
        found: TailSurvey,
        now_us: int,
        progress: Progress | None,
    ) -> None:
        """Start a recovery; `open` calls this."""
        self._storage = storage
        self._directory = directory
        self._config = config
        self._lock = lock
        self._survey = found
        self._now_us = now_us
        self._progress = progress
        self.manifest = manifest
        """The manifest on the disk."""
        self.scanned_bytes = 0
        """The bytes that `batches` has read so far."""
        self.total_bytes = self._bytes_from(0)
        """The bytes that `batches` will have read at its end."""

    @classmethod
    def open(
        cls,
        storage: Storage,
        directory: str,
        config: LogConfig,
        now_us: int,
        progress: Progress | None = None,
    ) -> "Recovery":
        """Lock the directory, create it if it is missing, and find the end of its log.

        The log writes no time before `now_us`. Raises LockedError, DamageError, ForeignError, and LogFailed if the disk
        fails.
        """
        try:
            storage.makedirs(segments_path(directory))
            lock = storage.lock(lock_path(directory))
            try:
                manifest = _manifest(storage, directory)
                found = survey(storage, directory, manifest, batch_bytes_max=config.batch_bytes_max)
                check_presence(storage, directory, manifest, valid_end=found.valid_end)
            except BaseException:
                lock.release()
                raise
        except OSError as error:
            raise LogFailed(f"opening {directory} failed: {error}") from error
        return cls(
            storage, directory, config, lock=lock, manifest=manifest, found=found, now_us=now_us, progress=progress
        )

    @property
    def durable_end(self) -> int:
        """D: the end of the part of the log that is known to be durable."""
        return self._survey.durable_end

    @property
    def valid_end(self) -> int:
        """The offset at which `batches` ends."""
        return self._survey.valid_end

    @property
    def fault(self) -> DamageError | None:
        """The fault that ends the log at or after D, for a report; None if only unwritten space follows."""
        return self._survey.fault

    @property
    def storage(self) -> Storage:
        """The disk."""
        return self._storage

    @property
    def directory(self) -> str:
        """The log's directory."""
        return self._directory

    def batches(self, from_offset: int = 0) -> Iterator[Batch]:
        """Yield every batch from an offset on, without bodies, in order up to the valid end.

        `from_offset` must not be within a batch. Sealed segments below it are not opened. Raises DamageError at the
        first bad batch.
        """
        self.total_bytes = self._bytes_from(from_offset)
        for walk in self._walks(from_offset):
            assert walk.header is not None
            if walk.header.base_offset >= from_offset:
                if walk.header.flags & KEPT:
                    raise self._kept_fault(walk.header.base_offset)
                yield walk.batch()

    def _kept_fault(self, offset: int) -> DamageError:
        expected = f"a horizon above offset {offset}, whose batch has kept messages only"
        return DamageError(manifest_path(self._directory), 0, expected, f"{self.manifest.horizon}")

    def _bytes_from(self, from_offset: int) -> int:
        sealed_bytes = sum(sealed.size for sealed in self.manifest.sealed if sealed.next_offset > from_offset)
        return sealed_bytes + sum(part.end for part in self._survey.parts)

    def _walks(self, from_offset: int) -> Iterator[BatchWalk]:
        config, manifest = self._config, self.manifest
        for sealed in manifest.sealed:
            if sealed.next_offset <= from_offset:
                continue
            part = open_sealed(self._storage, self._directory, manifest, sealed, batch_bytes_max=config.batch_bytes_max)
            walks = walk_whole(part, base_offset=sealed.base_offset, next_offset=sealed.next_offset)
            yield from self._walks_with_progress(walks, sealed.size)
            part.file.close()
        for part in self._survey.parts:
            walk = part.walk(end=part.end)
            yield from self._walks_with_progress((walk for _ in walk), part.end)

    def _walks_with_progress(self, walks: Iterator[BatchWalk], size: int) -> Iterator[BatchWalk]:
        before, reported = self.scanned_bytes, 0
        for walk in walks:
            yield walk
            if walk.position - reported > _PROGRESS_BYTES:
                reported = walk.position
                self._report_progress(before + reported)
        self._report_progress(before + size)

    def _report_progress(self, scanned_bytes: int) -> None:
        self.scanned_bytes = scanned_bytes
        if self._progress is not None:
            self._progress(scanned_bytes, self.total_bytes)

    def log(
        self,
        workers: Workers | None = None,
        *,
        touches_of: TouchesOf = no_touches,
        ballast: Ballast | None = None,
    ) -> Log:
        """Begin the next epoch and return its log, which owns `workers`; it ends the recovery.

        Before it serves, the caller appends the first records of its epoch and syncs them. `touches_of` yields the keys
        of a batch for the indexes. Without `ballast` the log has one in its own directory. Raises LogFailed if the disk
        fails.
        """
        workers = workers or ThreadWorkers()
        try:
            ballast = ballast or Ballast(self._storage, self._directory, self._config.ballast_bytes)
            self._make_room(ballast)
            return Log(self._begin_epoch(workers, touches_of, ballast))
        except (OSError, LogFailed) as error:
            workers.close()
            raise LogFailed(f"recovery of {self._directory} failed: {error}") from error
        finally:
            self._close_parts()

    def close(self) -> None:
        """Release the directory; nothing has changed in it."""
        self._close_parts()
        self._lock.release()

    def _close_parts(self) -> None:
        for part in self._survey.parts:
            part.file.close()

    def _make_room(self, ballast: Ballast) -> None:
        """Return the space that the log does not need; if the disk is nearly full, all that it can do without."""
        storage, directory, found = self._storage, self._directory, self._survey
        for part in found.parts:
            end = part.end if found.fault is None else _written_end(part)
            if end < part.file.size():
                self._truncate(part.path, end)
        self._empty_spare()
        tail_bytes = sum(walk.header.length for _, walk in found.tail() if walk.header is not None)
        if storage.free_bytes(directory) >= tail_bytes + _START_BYTES:
            return
        sweep(storage, directory)
        FileDeletion(storage, directory).delete(frozenset(self.manifest.removed))
        if storage.free_bytes(directory) < tail_bytes + _START_BYTES:
            ballast.release()

    def _empty_spare(self) -> None:
        """Return the space of a spare that was never written to. The manifest edit removes its file."""
        spare = self.manifest.spare
        if spare is None or not self._storage.exists(segment_path(self._directory, spare)):
            return
        file = self._storage.open(segment_path(self._directory, spare))
        try:
            is_unused = file.size() and not any(file.read(SEGMENT_HEADER_BYTES, 0))
        finally:
            file.close()
        if is_unused:
            self._truncate(segment_path(self._directory, spare), 0)

    def _truncate(self, path: str, length: int) -> None:
        file = self._storage.open(path, create=True)
        try:
            file.truncate(length)
        finally:
            file.close()

    def _begin_epoch(self, workers: Workers, touches_of: TouchesOf, ballast: Ballast) -> OpenFiles:
        storage, directory, found, old = self._storage, self._directory, self._survey, self.manifest
        file_id = free_file_id(storage, directory, old.next_file_id)
        header = SegmentHeader(draw_salt(), old.log_id, file_id, found.durable_end, old.epoch + 1)
        sealed = found.sealed()
        bodies = BodyStore(storage, self._config, workers)
        for one in (*old.sealed, *sealed):
            bodies.add_sealed(one.at(directory))
        file = storage.open(segment_path(directory, file_id), create=True)
        try:
            position = self._copy(file, header, bodies)
            edited = self._edit(sealed, file_id)
        except OSError:
            # The manifest does not name the file. A LogFailed leaves it: a power loss may restore either manifest.
            file.close()
            with suppress(OSError):
                storage.unlink(segment_path(directory, file_id))
            raise
        return OpenFiles(
            storage=storage,
            directory=directory,
            config=self._config,
            workers=workers,
            lock=self._lock,
            manifest=edited,
            file=file,
            header=header,
            position=position,
            next_offset=edited.start_offset,
            durable_end=edited.start_offset,
            now_us=self._now_us,
            bodies=bodies,
            ballast=ballast,
            touches_of=touches_of,
            times=union(*(part.times for part in found.parts)) if found.valid_end > found.durable_end else None,
        )

    def _edit(self, sealed: tuple[SealedSegment, ...], file_id: int) -> Manifest:
        """Store the manifest of the new epoch, whose segment is complete, and return it."""
        found, old = self._survey, self.manifest
        # Above the last epoch's first offset even if nothing of it remains: a client may have seen a lost offset.
        start_offset = max(found.next_start, old.start_offset + EPOCH_OFFSETS) if old.epoch else found.next_start
        edited = manifests.begin_epoch(
            old,
            sealed=sealed,
            file_id=file_id,
            durable_end=found.durable_end,
            valid_end=found.valid_end,
            start_offset=start_offset,
        )
        manifests.store(self._storage, self._directory, edited)
        return edited

    def _copy(self, file: File, header: SegmentHeader, bodies: BodyStore) -> int:
        """Write the new segment with its header and the tail's batches, sync it and its name.

        Return the position after the last batch.
        """
        path = segment_path(self._directory, header.file_id)
        bodies.begin(base_offset=header.base_offset, path=path, salt_crc=header.salt_crc)
        file.write([header.encode()], 0)
        position = SEGMENT_HEADER_BYTES
        for _, walk in self._survey.tail():
            assert walk.header is not None
            if walk.header.count:
                bodies.note_batch(walk.header.base_offset, position)
                position = copy_batch(walk, file, position=position, salt_crc=header.salt_crc)
        file.sync()
        self._storage.sync_directory(segments_path(self._directory))
        return position


def _written_end(part: SegmentReader) -> int:
    """Return the position after the last byte of a part that is not zero: what follows the fault stays for a report."""
    end = part.file.size()
    while end > part.end:
        start = max(part.end, end - _PIECE_BYTES)
        written = part.file.read(end - start, start).rstrip(b"\0")
        if written:
            return start + len(written)
        end = start
    return end


def _is_unwritten(storage: Storage, path: str) -> bool:
    file = storage.open(path)
    try:
        return is_unwritten(file)
    finally:
        file.close()


def _manifest(storage: Storage, directory: str) -> Manifest:
    """Return the manifest; store that of a new log if the directory has neither a manifest nor a batch.

    A failed first start removes what it has made, and a kill may leave a segment without a batch then.
    """
    manifest = manifests.load(storage, directory)
    if manifest is not None:
        return manifest
    if storage.exists(restoring_path(directory)):
        raise LogError(f"{directory} holds an unfinished restore: run the restore again, or delete the directory")
    names = [name for name in storage.listdir(segments_path(directory)) if name.endswith(".log")]
    segments = [name for name in names if not _is_unwritten(storage, f"{segments_path(directory)}/{name}")]
    if segments:
        raise DamageError(manifest_path(directory), 0, f"a manifest for {len(segments)} segments", "no file")
    manifest = manifests.create(secrets.token_bytes(16))
    manifests.store(storage, directory, manifest)
    return manifest
