"""Restore a log from a backup.

    check    the whole backup, before the directory changes
    mark     DIR/RESTORING: no broker opens the directory, and a later restore may remove the files of this one
    write    snapshot and segments, with the id of a new log in their headers; synced, and read back
    name     the manifest, which makes it a log; then the mark is removed

Rule 1. A restored log has an id of its own: its history differs from the original's from now on. So files of one log
are never taken for files of the other.
Rule 2. Its horizon is the end of the snapshot: a backup does not have the events below. Offsets stay, and new ones
begin at a multiple of 2^20 above all of them.
Rule 3. If a restore ends early, the directory holds a whole log, or none that opens.
"""

import secrets
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Final

from ambermq.log.errors import DamageError
from ambermq.log.format.checksum import crc32c
from ambermq.log.format.segment import SEGMENT_HEADER_BYTES, SegmentHeader, segment_path
from ambermq.log.manifest import manifest as manifests
from ambermq.log.manifest.manifest import (
    Horizon,
    Manifest,
    SealedSegment,
    Snapshot,
    manifest_path,
    segments_path,
    snapshot_path,
    snapshots_path,
)
from ambermq.log.recovery.recovery import lock_path, restoring_path
from ambermq.log.segments.tail_survey import EPOCH_OFFSETS
from ambermq.log.storage.disk import DiskFile, DiskStorage
from ambermq.log.storage.steady_file import SteadyFile
from ambermq.snapshot.block_file import HEADER_BYTES as SNAPSHOT_HEADER_BYTES
from ambermq.snapshot.block_file import decode_header, encode_header
from ambermq.tools.backup.format import Table
from ambermq.tools.backup.progress import Progress, no_progress
from ambermq.tools.backup.reader import BackupReader
from ambermq.tools.backup.verify import check_backup
from ambermq.tools.terminal.errors import ToolError

__all__ = ["check_target", "restore_backup"]

_STORAGE: Final = DiskStorage()
_READ_BYTES: Final = 1 << 20


def restore_backup(
    path: str, directory: str, *, checking: Progress = no_progress, writing: Progress = no_progress
) -> Manifest:
    """Restore the backup at `path` as a log in `directory`, and return its manifest.

    Raises ToolError if the directory holds a log or cannot be written, LockedError if a broker has locked it, and the
    errors of `verify_backup`. After an error the directory is as it was before.
    """
    check_target(directory)
    with BackupReader(path) as reader:
        check_backup(reader, path, checking)
        created = _missing(directory)
        try:
            _STORAGE.makedirs(directory)
            lock = _STORAGE.lock(lock_path(directory))
            try:
                check_target(directory)
                return _restore(reader, directory, writing)
            except BaseException:
                _sweep(directory)
                raise
            finally:
                lock.release()
        except OSError as error:
            raise ToolError("the log cannot be written", where=directory, found=error.strerror or str(error)) from error
        finally:
            _remove_empty(directory, created)


def _restore(reader: BackupReader, directory: str, progress: Progress) -> Manifest:
    _sweep(directory)
    _STORAGE.open(restoring_path(directory), create=True).close()
    _STORAGE.sync_directory(directory)
    for folder in (segments_path(directory), snapshots_path(directory)):
        _STORAGE.makedirs(folder)
    manifest = _manifest_of(reader.table)
    _write_snapshot(reader, directory, manifest)
    for number, sealed in enumerate(manifest.sealed, 1):
        _write_segment(reader, number, sealed, directory, manifest)
        progress(number, len(manifest.sealed))
    for folder in (segments_path(directory), snapshots_path(directory)):
        _STORAGE.sync_directory(folder)
    manifests.store(_STORAGE, directory, manifest)
    _STORAGE.unlink(restoring_path(directory))
    _STORAGE.sync_directory(directory)
    return manifest


def _manifest_of(table: Table) -> Manifest:
    snapshot_part, *segment_parts = table.parts
    sealed = tuple(
        SealedSegment(file_id, part.segment.base_offset, part.segment.next_offset, part.length)
        for file_id, part in enumerate(segment_parts, 1)
        if part.segment is not None
    )
    file_id = len(sealed) + 1
    snapshot = Snapshot(
        file_id=file_id,
        name=table.name,
        end=table.end,
        time_us=table.time_us,
        created_us=table.created_us,
        size=snapshot_part.length,
        is_automatic=False,
    )
    return Manifest(
        version=manifests.VERSION,
        log_id=secrets.token_bytes(16),
        generation=1,
        epoch=table.epoch,
        next_file_id=file_id + 1,
        durable_end=table.end,
        start_offset=-(-table.end // EPOCH_OFFSETS) * EPOCH_OFFSETS,
        sealed=sealed,
        snapshots=(snapshot,),
        horizon=Horizon(table.end, table.time_us),
    )


def _write_snapshot(reader: BackupReader, directory: str, manifest: Manifest) -> None:
    content = reader.content(0)
    head, rest = _split(content, SNAPSHOT_HEADER_BYTES)
    header = decode_header(head, crc32c)._replace(log_id=manifest.log_id)
    path = snapshot_path(directory, manifest.snapshots[0].file_id)
    _write(path, chain((encode_header(header, crc32c), rest), content))


def _write_segment(
    reader: BackupReader, number: int, sealed: SealedSegment, directory: str, manifest: Manifest
) -> None:
    content = reader.content(number)
    head, rest = _split(content, SEGMENT_HEADER_BYTES)
    header = SegmentHeader.decode(head, reader.table.parts[number].name)
    assert header is not None
    header = header._replace(log_id=manifest.log_id, file_id=sealed.file_id)
    _write(segment_path(directory, sealed.file_id), chain((header.encode(), rest), content))


def _split(content: Iterator[bytes], length: int) -> tuple[bytes, bytes]:
    """Return the first `length` bytes, and the rest of the pieces that were read for them."""
    first = next(content, b"")
    while len(first) < length and (more := next(content, b"")):
        first += more
    return first[:length], first[length:]


def _write(path: str, content: Iterable[bytes]) -> None:
    """Write and sync a file, then read it back to compare its checksum.

    The page cache is dropped before, so the bytes come from the disk if the kernel allows it.
    """
    file = _STORAGE.open(path, create=True)
    written, crc = SteadyFile(file, is_cached=False), 0
    try:
        for piece in content:
            written.write([piece])
            crc = crc32c(piece, crc)
        written.sync()
        found = _crc_of(file)
    finally:
        file.close()
    if found != crc:
        raise DamageError(
            path, 0, f"{written.position} bytes with crc32c {crc:08x}", f"{found:08x}: the disk is damaged"
        )


def _crc_of(file: DiskFile) -> int:
    position = crc = 0
    while piece := file.read(_READ_BYTES, position):
        position, crc = position + len(piece), crc32c(piece, crc)
    file.drop_cache(0, 0)
    return crc


def check_target(directory: str) -> None:
    """Raise ToolError if the directory holds a log, or files of one."""
    if _STORAGE.exists(manifest_path(directory)):
        raise ToolError("the directory holds a log already", where=directory, advice="name another one with --data")
    has_mark = _STORAGE.exists(restoring_path(directory))
    for folder in (segments_path(directory), snapshots_path(directory)):
        if not has_mark and _STORAGE.exists(folder) and _STORAGE.listdir(folder):
            raise ToolError("the directory holds files of a log", where=folder, advice="name another one with --data")


def _sweep(directory: str) -> None:
    """Remove the files of a restore that did not finish, the mark last."""
    if _STORAGE.exists(manifest_path(directory)) or not _STORAGE.exists(restoring_path(directory)):
        return
    for folder in (segments_path(directory), snapshots_path(directory)):
        for name in _STORAGE.listdir(folder) if _STORAGE.exists(folder) else ():
            _STORAGE.unlink(f"{folder}/{name}")
    with suppress(OSError):
        Path(f"{manifest_path(directory)}.new").unlink(missing_ok=True)
        Path(segments_path(directory)).rmdir()
        Path(snapshots_path(directory)).rmdir()
    _STORAGE.unlink(restoring_path(directory))
    _STORAGE.sync_directory(directory)


def _missing(directory: str) -> list[Path]:
    """Return the missing directories among the directory and its parents, the innermost first."""
    target = Path(directory).absolute()
    return [path for path in (target, *target.parents) if not path.exists()]


def _remove_empty(directory: str, created: list[Path]) -> None:
    """Remove the directories that a failed restore created; they hold at most a lock file."""
    if created and not _STORAGE.exists(manifest_path(directory)):
        with suppress(OSError):
            Path(lock_path(directory)).unlink(missing_ok=True)
            for path in created:
                path.rmdir()
