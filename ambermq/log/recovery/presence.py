"""The check that nothing is gone of what the manifest and the indexes know.

Rule 1. A start with a snapshot reads no sealed segment below it, so a missing or truncated one would not be noticed.
Its file must be there with the size in the manifest. That costs one call of the disk a segment.
Rule 2. An index is built of a segment that is sealed and durable. If it has offsets beyond those of its segment, the
segment or the manifest is an older one than the log had.
"""

from ambermq.log.errors import DamageError
from ambermq.log.format.segment import segment_path
from ambermq.log.index.segment_index import known_end
from ambermq.log.manifest.manifest import Manifest, SealedSegment
from ambermq.log.storage.interface import Storage

__all__ = ["check_presence"]


def check_presence(storage: Storage, directory: str, manifest: Manifest, *, valid_end: int) -> None:
    """Raise DamageError at the first segment that is missing, truncated, or ends before its index.

    `valid_end` is the end of the log, by a survey.
    """
    for sealed in manifest.sealed:
        _check_sealed(storage, directory, sealed)
    if manifest.active is not None:
        _check_index(segment_path(directory, manifest.active.file_id), manifest.active.file_id, valid_end, position=0)


def _check_sealed(storage: Storage, directory: str, sealed: SealedSegment) -> None:
    path = segment_path(directory, sealed.file_id)
    try:
        size = storage.size(path)
    except FileNotFoundError as error:
        raise DamageError(path, 0, "a segment that the manifest names", "no file") from error
    if size < sealed.size:
        raise DamageError(path, size, f"a file of {sealed.size} bytes", f"{size}")
    _check_index(path, sealed.file_id, sealed.next_offset, position=sealed.size)


def _check_index(path: str, file_id: int, end: int, *, position: int) -> None:
    indexed_end = known_end(path, file_id)
    if indexed_end is not None and indexed_end > end:
        raise DamageError(path, position, f"offsets up to {indexed_end}, which its index has", f"none from {end}")
