"""The removal of the files that a failed first start has made in a data directory.

Rule 1. Only a directory that had no manifest before the start is touched, and in it only names that it did not have.
        A start that another process kept from the lock has made nothing.
Rule 2. The files are removed under the lock of the directory, all of them or none: only if they are what a start
        makes before its first event. A batch, a snapshot, a backup that is being restored, or a file of another name
        keeps them. So a broker or a restore that began at the same time loses nothing.
Rule 3. No symbolic link below the directory is followed, and no directory is removed with its content.
Rule 4. The removal never raises: the error of the start is the one to report. A kill in the middle of it leaves a
        directory that the next start takes for a new one.
"""

import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from ambermq.log.errors import LockedError, LogError
from ambermq.log.manifest.manifest import load, manifest_path, segments_path
from ambermq.log.manifest.writer_lock import lock_path
from ambermq.log.recovery.recovery import restoring_path
from ambermq.log.segments.segment_reader import is_unwritten
from ambermq.log.storage.disk import DiskFile, DiskStorage

__all__ = ["new_files_removed"]

_NAMES: Final = ("ballast", "MANIFEST.new", "MANIFEST", "segments", "lock")
"""What a start makes before it serves. The lock is removed last."""
_SEGMENT_NAME: Final = re.compile(r"[0-9a-f]{16}\.log")


@contextmanager
def new_files_removed(directory: str) -> Iterator[None]:
    """Run the block; if it raises, remove what it has made in a directory that had no log before."""
    root = Path(directory).absolute()
    had_log, before = Path(manifest_path(directory)).exists(), _names_in(root)
    missing = [one for one in (root, *root.parents) if not one.exists()]
    try:
        yield
    except LockedError:
        raise
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
    if not os.path.lexists(lock_path(directory)):
        # Without a lock nothing was made but the directory of segments.
        if "segments" not in before:
            Path(segments_path(directory)).rmdir()
        return
    storage = DiskStorage()
    lock = storage.lock(lock_path(directory))
    try:
        if _is_new(storage, directory):
            _remove(directory, [name for name in _NAMES if name not in before])
    finally:
        lock.release()


def _is_new(storage: DiskStorage, directory: str) -> bool:
    """Return whether the directory holds a log without an event, or none."""
    if storage.exists(restoring_path(directory)):
        return False
    manifest = load(storage, directory)
    return manifest is None or not (manifest.sealed or manifest.snapshots or manifest.horizon or manifest.lost)


def _remove(directory: str, names: list[str]) -> None:
    fd = os.open(segments_path(directory), os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        with os.scandir(fd) as entries:
            found = [entry.name for entry in entries]
        if not all(_is_unused(fd, name) for name in found):
            return
        # The manifest goes first: without it, segments without a batch are no log.
        _unlink(directory, [name for name in names if name not in {"segments", "lock"}])
        if "segments" in names:
            for name in found:
                os.unlink(name, dir_fd=fd)
            Path(segments_path(directory)).rmdir()
    finally:
        os.close(fd)
    _unlink(directory, [name for name in names if name == "lock"])


def _is_unused(segments_fd: int, name: str) -> bool:
    """Return whether a name in the directory of segments is a segment that has no batch."""
    if not _SEGMENT_NAME.fullmatch(name):
        return False
    file = DiskFile(os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=segments_fd))
    try:
        return stat.S_ISREG(os.fstat(file.fileno()).st_mode) and is_unwritten(file)
    finally:
        file.close()


def _unlink(directory: str, names: list[str]) -> None:
    """Remove files; a directory stays."""
    for name in names:
        with suppress(OSError):
            (Path(directory) / name).unlink()
