"""The removal of the files that a failed first start has made in a data directory.

Rule 1. Only a directory that had no manifest before the start is touched, and in it only names that it did not have.
        So a log, a backup that is being restored, and files of other programs stay.
Rule 2. The files are removed under the lock of the directory, and only if its log holds no event. So a broker that was
        started at the same time loses nothing.
Rule 3. The removal never raises: the error of the start is the one to report.
"""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from ambermq.log.config import LogConfig
from ambermq.log.errors import LogError
from ambermq.log.format.segment import SEGMENT_HEADER_BYTES
from ambermq.log.manifest.manifest import load, manifest_path
from ambermq.log.manifest.writer_lock import lock_path
from ambermq.log.segments.tail_survey import survey
from ambermq.log.storage.disk import DiskStorage

__all__ = ["new_files_removed"]

_NAMES: Final = ("ballast", "MANIFEST.new", "MANIFEST", "segments", "lock")
"""What a start makes before it serves; the lock is removed last."""


@contextmanager
def new_files_removed(directory: str) -> Iterator[None]:
    """Run the block; if it raises, remove what it has made in a directory that had no log before."""
    root = Path(directory).absolute()
    had_log, before = Path(manifest_path(directory)).exists(), _names_in(root)
    missing = [one for one in (root, *root.parents) if not one.exists()]
    try:
        yield
    except (Exception, KeyboardInterrupt):
        if not had_log:
            with suppress(OSError, LogError):
                _remove_new(directory, before)
            with suppress(OSError):
                for one in missing:
                    one.rmdir()
        raise


def _names_in(root: Path) -> frozenset[str]:
    """Return the names in a directory; all that a start makes if it cannot be listed."""
    try:
        return frozenset(one.name for one in root.iterdir())
    except FileNotFoundError:
        return frozenset()
    except OSError:
        return frozenset(_NAMES)


def _remove_new(directory: str, before: frozenset[str]) -> None:
    if not Path(lock_path(directory)).exists():
        return
    storage = DiskStorage()
    lock = storage.lock(lock_path(directory))
    try:
        if _has_events(storage, directory):
            return
        for name in _NAMES:
            if name not in before:
                _remove(Path(directory) / name)
    finally:
        lock.release()


def _has_events(storage: DiskStorage, directory: str) -> bool:
    manifest = load(storage, directory)
    if manifest is None:
        return False
    found = survey(storage, directory, manifest, batch_bytes_max=LogConfig().batch_bytes_max)
    for part in found.parts:
        part.file.close()
    return bool(manifest.sealed) or any(part.end > SEGMENT_HEADER_BYTES for part in found.parts)


def _remove(path: Path) -> None:
    with suppress(OSError):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()
