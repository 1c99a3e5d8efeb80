"""The checks of the data directory and its disk: permissions, file system, space, and what a sync costs."""

import os
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from ambermq.tools.doctor.finding import Finding, Level
from ambermq.tools.terminal.sizes import size_text

__all__ = ["check_disk", "file_system_of"]

_SYNC_COUNT: Final = 200
_BLOCK: Final = bytes(4096)
_SPEED_BYTES: Final = 32 << 20
_PIECE_BYTES: Final = 1 << 20
_SUSPECT_US: Final = 15
"""No disk stores 4 KiB in so little time."""
_SLOW_MS: Final = 20.0
_ROOM_BYTES: Final = 1 << 30
_GOOD: Final = frozenset(("ext4", "xfs"))
_VOLATILE: Final = frozenset(("tmpfs", "ramfs"))
_REMOTE: Final = frozenset(("nfs", "nfs4", "cifs", "smb3", "9p", "fuse", "fuseblk", "glusterfs", "ceph"))


def check_disk(directory: Path) -> Iterator[Finding]:
    """Yield the findings about a data directory, or about the directory in which it will be made."""
    place = directory
    while not place.is_dir() and place != place.parent:
        place = place.parent
    yield _owner(directory, place)
    yield _kind(place)
    yield _space(place)
    if os.access(place, os.W_OK):
        yield _sync(place)
        yield _speed(place)


def _owner(directory: Path, place: Path) -> Finding:
    name = "directory"
    if not os.access(place, os.W_OK | os.X_OK):
        advice = f"give it to the user of the broker: chown -R USER {place}"
        return Finding(name, Level.FAULT, f"{place} is not writable for this user", advice)
    if place != directory:
        return Finding(name, Level.OK, f"{directory} does not exist yet; {place} is writable")
    status = directory.stat()
    mode = stat.S_IMODE(status.st_mode)
    if status.st_uid != os.geteuid() and os.geteuid():
        return Finding(name, Level.FAULT, f"{directory} belongs to user {status.st_uid}", "run as that user")
    if mode & 0o077:
        return Finding(
            name, Level.WARNING, f"{directory} has mode {mode:04o}: others may read messages", f"chmod 0700 {directory}"
        )
    return Finding(name, Level.OK, f"{directory} has mode {mode:04o}")


def file_system_of(place: Path, mounts: str) -> str:
    """Return the type of the file system at a path, by the text of /proc/mounts."""
    found, longest = "", -1
    for line in mounts.splitlines():
        fields = line.split()
        if len(fields) < 3:
            continue
        # Octal escapes stand for blanks in a path.
        point = fields[1].encode().decode("unicode_escape")
        is_above = place.is_relative_to(point)
        if is_above and len(point) >= longest:
            found, longest = fields[2], len(point)
    return found


def _kind(place: Path) -> Finding:
    name = "file system"
    try:
        kind = file_system_of(place.resolve(), Path("/proc/mounts").read_text(encoding="utf-8"))
    except OSError as error:
        return Finding(name, Level.WARNING, f"unknown: {error}")
    if kind in _VOLATILE:
        return Finding(name, Level.FAULT, f"{kind} is memory: a restart of the machine loses everything", "use a disk")
    if kind.partition(".")[0] in _REMOTE:
        advice = "use a local disk: locks, renames and syncs of network file systems differ"
        return Finding(name, Level.WARNING, kind, advice)
    if kind not in _GOOD:
        return Finding(name, Level.WARNING, f"{kind or 'unknown'}, which is not tested", "use ext4 or xfs")
    return Finding(name, Level.OK, kind)


def _space(place: Path) -> Finding:
    name, usage = "disk space", shutil.disk_usage(place)
    found = f"{size_text(usage.free)} free of {size_text(usage.total)}"
    if usage.free < _ROOM_BYTES:
        advice = "free space: below room_bytes_min (512 MiB) the broker deletes old history, then refuses messages"
        return Finding(name, Level.WARNING, found, advice)
    inodes = os.statvfs(place)
    if inodes.f_files and inodes.f_favail < inodes.f_files // 100:
        return Finding(name, Level.WARNING, f"{found}, but {inodes.f_favail} inodes", "free inodes: delete small files")
    return Finding(name, Level.OK, found)


def _sync(place: Path) -> Finding:
    """Time writes of 4 KiB with fdatasync, as a message alone causes them."""
    name = "sync"
    try:
        times = _sync_times(place)
    except OSError as error:
        return Finding(name, Level.FAULT, str(error), "check the disk and the kernel's messages")
    median_ms, worst_ms = times[len(times) // 2] * 1000, times[int(len(times) * 0.99)] * 1000
    found = f"4 KiB are durable in {median_ms:.2f} ms, 99 % within {worst_ms:.2f} ms"
    if median_ms * 1000 < _SUSPECT_US:
        advice = "this is faster than any disk: its cache may lose what it acknowledged. Turn the volatile cache off"
        return Finding(name, Level.FAULT, found, advice)
    if median_ms > _SLOW_MS:
        return Finding(name, Level.WARNING, found, "a message alone waits for so long; use a disk with a safe cache")
    return Finding(name, Level.OK, found)


def _sync_times(place: Path) -> list[float]:
    times = []
    with tempfile.NamedTemporaryFile(dir=place, prefix=".ambermq-doctor-") as file:
        number = file.fileno()
        os.pwrite(number, _BLOCK * _SYNC_COUNT, 0)
        os.fsync(number)
        for position in range(_SYNC_COUNT):
            began = time.perf_counter()
            os.pwrite(number, _BLOCK, position * len(_BLOCK))
            os.fdatasync(number)
            times.append(time.perf_counter() - began)
    return sorted(times)


def _speed(place: Path) -> Finding:
    """Time a sequential write with one sync."""
    name = "disk speed"
    if shutil.disk_usage(place).free < 4 * _SPEED_BYTES:
        return Finding(name, Level.WARNING, "not measured: there is too little space")
    piece = os.urandom(_PIECE_BYTES)
    try:
        with tempfile.NamedTemporaryFile(dir=place, prefix=".ambermq-doctor-") as file:
            began = time.perf_counter()
            for position in range(0, _SPEED_BYTES, _PIECE_BYTES):
                os.pwrite(file.fileno(), piece, position)
            os.fdatasync(file.fileno())
            seconds = time.perf_counter() - began
    except OSError as error:
        return Finding(name, Level.FAULT, str(error), "check the disk and the kernel's messages")
    return Finding(name, Level.OK, f"{_SPEED_BYTES / seconds / 1e6:,.0f} MB/s, written and synced")
