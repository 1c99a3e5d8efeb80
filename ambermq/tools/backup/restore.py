"""Making a log from a backup.

    check    the whole backup, before anything is touched
    mark     DIR/RESTORING: nobody opens the directory, and a later restore may remove what this one has left
    write    snapshot and segments, with the id of a new log in their headers; synced, and read back
    name     the manifest, which makes it a log; then the mark goes

Rule 1. A restored log has an id of its own: what it writes from now on is another history than the original's, and
files of the one must never be taken for the other's.
Rule 2. Its horizon is the snapshot's end: the events below are not in a backup. Offsets stay, and new ones begin at a
multiple of 2^20 above all of them.
Rule 3. Whatever ends a restore, the directory holds a whole log or none that opens.
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
from ambermq.snapshot.block_file import HEADER_BYTES as SNAPSHOT_HEADER_BYTES
from ambermq.snapshot.block_file import decode_header, encode_header
from ambermq.tools.backup.format import Table
from ambermq.tools.backup.reader import BackupReader
from ambermq.tools.backup.verify import check_backup
from ambermq.tools.terminal.errors import ToolError

__all__ = ["restore_backup"]

_STORAGE: Final = DiskStorage()
_SYNC_BYTES: Final = 8 << 20
_READ_BYTES: Final = 1 << 20


def restore_backup(path: str, directory: str) -> Manifest:
    """Make a log in `directory` from the backup at `path`, and return its manifest.

    Raises ToolError where the directory holds a log or cannot be written, LockedError where a broker has it, and what
    `verify_backup` does; the directory is as it was then.
    """
    _refuse_log(directory)
    with BackupReader(path) as reader:
        check_backup(reader, path)
        made = _missing(directory)
        try:
            _STORAGE.makedirs(directory)
            lock = _STORAGE.lock(lock_path(directory))
            try:
                _refuse_log(directory)
                return _restore(reader, directory)
            except BaseException:
                _sweep(directory)
                raise
            finally:
                lock.release()
        except OSError as error:
            raise ToolError("the log cannot be written", where=directory, found=error.strerror or str(error)) from error
        finally:
            _remove_empty(directory, made)


def _restore(reader: BackupReader, directory: str) -> Manifest:
    _sweep(directory)
    _STORAGE.open(restoring_path(directory), create=True).close()
    _STORAGE.sync_directory(directory)
    for folder in (segments_path(directory), snapshots_path(directory)):
        _STORAGE.makedirs(folder)
    manifest = _manifest_of(reader.table)
    _write_snapshot(reader, directory, manifest)
    for number, sealed in enumerate(manifest.sealed, 1):
        _write_segment(reader, number, sealed, directory, manifest)
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
    """Return the first `length` bytes, and what came with them."""
    first = next(content, b"")
    while len(first) < length and (more := next(content, b"")):
        first += more
    return first[:length], first[length:]


def _write(path: str, content: Iterable[bytes]) -> None:
    """Write a file, synced, and read it back past the page cache as far as that goes."""
    file = _STORAGE.open(path, create=True)
    position = synced = crc = 0
    try:
        for piece in content:
            file.write([piece], position)
            position, crc = position + len(piece), crc32c(piece, crc)
            if position - synced >= _SYNC_BYTES:
                file.datasync()
                synced = position
        file.sync()
        file.drop_cache(0, 0)
        found = _crc_of(file)
    finally:
        file.close()
    if found != crc:
        raise DamageError(path, 0, f"{position} bytes with crc32c {crc:08x}", f"{found:08x}: the disk is at fault")


def _crc_of(file: DiskFile) -> int:
    position = crc = 0
    while piece := file.read(_READ_BYTES, position):
        position, crc = position + len(piece), crc32c(piece, crc)
    file.drop_cache(0, 0)
    return crc


def _refuse_log(directory: str) -> None:
    """Raise ToolError where there is a log, or what may be left of one."""
    if _STORAGE.exists(manifest_path(directory)):
        raise ToolError("the directory holds a log already", where=directory, advice="name another one with --data")
    is_ours = _STORAGE.exists(restoring_path(directory))
    for folder in (segments_path(directory), snapshots_path(directory)):
        if not is_ours and _STORAGE.exists(folder) and _STORAGE.listdir(folder):
            raise ToolError("there are files of a log", where=folder, advice="name another directory with --data")


def _sweep(directory: str) -> None:
    """Remove what a restore that did not end has left, the mark last."""
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
    """Return those of the directory and its parents that are to be made, the innermost first."""
    target = Path(directory).absolute()
    return [path for path in (target, *target.parents) if not path.exists()]


def _remove_empty(directory: str, made: list[Path]) -> None:
    """Remove directories that were made for nothing: those that hold a lock file at most."""
    if made and not _STORAGE.exists(manifest_path(directory)):
        with suppress(OSError):
            Path(lock_path(directory)).unlink(missing_ok=True)
            for path in made:
                path.rmdir()
