"""A disk in memory that forgets, in every legal way, what was not synced.

Rule 1. What is written is seen by every reader at once, and by the platter only after a sync of the file.
Rule 2. A crash keeps any subset of the unsynced 512-byte sectors, each in any version it had since the last sync, and
        any length the file had: a torn write is one of these cases.
Rule 3. A crash keeps any subset of the names created, renamed and removed since the last sync of their directory.
Rule 4. A sync that fails keeps any subset of the sectors too, and then believes all of them clean: a later sync that
        succeeds proves nothing, readers still see the new bytes, and only a direct read sees the platter.
Rule 5. A write that fails has written any prefix of its bytes.

Every choice is drawn from a `random.Random` handed in, so a seed tells the whole story.
"""

import errno
import os
import random
import threading
from collections import Counter
from collections.abc import Sequence

from ambermq.log.buffer import Buffer
from ambermq.log.errors import LockedError

__all__ = ["SECTOR_BYTES", "SimulatedFile", "SimulatedFileLock", "SimulatedLock", "SimulatedStorage"]

SECTOR_BYTES = 512


class Inode:
    """The bytes of one file, as readers see them and as they lie on the platter."""

    def __init__(self) -> None:
        self.seen = bytearray()
        self.platter = bytearray()
        self.versions: dict[int, list[bytes]] = {}
        """Sector number -> each content it had since the last sync, oldest first; the last one is what is seen."""
        self.lengths: list[int] = []
        """Each length the file had since the last sync."""
        self.is_cached = True

    def write(self, content: bytes, position: int) -> None:
        end = position + len(content)
        self.extend(end)
        self.seen[position:end] = content
        for sector in range(position // SECTOR_BYTES, -(-end // SECTOR_BYTES)):
            self.versions.setdefault(sector, []).append(self._sector(sector))

    def extend(self, length: int) -> None:
        if length > len(self.seen):
            self.seen.extend(bytes(length - len(self.seen)))
            self.lengths.append(length)

    def cut(self, length: int) -> None:
        """Cut the file; until a sync a crash may find it at any length that it had."""
        if length < len(self.seen):
            del self.seen[length:]
            self.lengths.append(length)
            first = -(-length // SECTOR_BYTES)
            self.versions = {sector: each for sector, each in self.versions.items() if sector < first}

    def sync(self) -> None:
        self._settle(length=len(self.seen), versions={sector: each[-1] for sector, each in self.versions.items()})

    def forget(self, rng: random.Random) -> None:
        """Bring any legal part of what was not synced to the platter, and no more."""
        versions = {}
        for sector, each in self.versions.items():
            choice = rng.randrange(len(each) + 1)
            if choice:
                versions[sector] = each[choice - 1]
        self._settle(length=rng.choice([len(self.platter), *self.lengths]), versions=versions)

    def drop_cache(self, position: int, length: int) -> None:
        end = position + length if length else len(self.seen)
        first, last = -(-position // SECTOR_BYTES), end // SECTOR_BYTES
        for sector in range(first, last):
            if sector not in self.versions:
                start = sector * SECTOR_BYTES
                self.seen[start : start + SECTOR_BYTES] = self.platter[start : start + SECTOR_BYTES].ljust(
                    SECTOR_BYTES, b"\0"
                )
        self.is_cached = False

    def direct(self) -> bytes:
        """What a direct read finds: dirty pages are written out for it first, clean ones come from the platter."""
        content = self.platter[: len(self.seen)].ljust(len(self.seen), b"\0")
        for sector, each in self.versions.items():
            start = sector * SECTOR_BYTES
            content[start : start + len(each[-1])] = each[-1]
        return bytes(content)

    def _sector(self, sector: int) -> bytes:
        start = sector * SECTOR_BYTES
        return bytes(self.seen[start : start + SECTOR_BYTES])

    def _settle(self, *, length: int, versions: dict[int, bytes]) -> None:
        self.platter = self.platter[:length].ljust(length, b"\0")
        for sector, content in versions.items():
            start = sector * SECTOR_BYTES
            kept = content[: max(0, length - start)]
            self.platter[start : start + len(kept)] = kept
        self.versions.clear()
        self.lengths.clear()


class SimulatedFile:
    """See log.storage.File. After a crash it raises EBADF."""

    def __init__(self, storage: "SimulatedStorage", inode: Inode, *, is_direct: bool, is_writable: bool) -> None:
        self._storage = storage
        self._is_writable = is_writable
        self._inode = inode
        self._is_direct = is_direct
        self._life = storage.lives

    def write(self, buffers: Sequence[Buffer], position: int) -> None:
        content = b"".join(buffers)
        self._check_writable()
        with self._storage.mutex:
            try:
                self._call("write")
                self._storage.take_space(position + len(content) - len(self._inode.seen))
            except OSError:
                if self._life == self._storage.lives:
                    self._inode.write(content[: self._storage.rng.randrange(len(content) + 1)], position)
                raise
            self._inode.write(content, position)

    def read(self, length: int, position: int) -> bytes:
        with self._storage.mutex:
            self._call("read")
            self._inode.is_cached = True
            content = self._inode.direct() if self._is_direct else self._inode.seen
            return bytes(content[position : position + length])

    def read_now(self, length: int, position: int) -> bytes | None:
        with self._storage.mutex:
            self._call("read_now")
            content = bytes(self._inode.seen[position : position + length])
            return content if self._inode.is_cached and len(content) == length else None

    def fileno(self) -> int:
        return -1

    def datasync(self) -> None:
        self._sync("datasync")

    def sync(self) -> None:
        self._sync("sync")

    def _sync(self, operation: str) -> None:
        with self._storage.mutex:
            try:
                self._call(operation)
            except OSError:
                if self._life == self._storage.lives:
                    self._inode.forget(self._storage.rng)
                raise
            self._inode.sync()

    def allocate(self, position: int, length: int, *, zero: bool) -> None:
        self._check_writable()
        with self._storage.mutex:
            self._call("allocate")
            self._storage.take_space(position + length - len(self._inode.seen))
            self._inode.extend(position + length)

    def truncate(self, length: int) -> None:
        self._check_writable()
        with self._storage.mutex:
            self._call("truncate")
            self._inode.cut(length)

    def _check_writable(self) -> None:
        if not self._is_writable:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))

    def write_back(self, position: int, length: int, *, wait: bool) -> None:
        del position, length, wait
        with self._storage.mutex:
            self._call("write_back")

    def drop_cache(self, position: int, length: int) -> None:
        with self._storage.mutex:
            self._call("drop_cache")
            self._inode.drop_cache(position, length)

    def size(self) -> int:
        with self._storage.mutex:
            self._call("size")
            return len(self._inode.seen)

    def close(self) -> None:
        self._life = -1

    def _call(self, operation: str) -> None:
        if self._life != self._storage.lives:
            raise OSError(errno.EBADF, "closed, or of a life before the crash")
        self._storage.count_call(operation)


class SimulatedLock:
    """See log.storage.Lock."""

    def __init__(self, storage: "SimulatedStorage", path: str) -> None:
        self._storage = storage
        self._path = path

    def write(self, text: str) -> None:
        self._storage.locks[self._path] = text

    def release(self) -> None:
        self._storage.locks.pop(self._path, None)


class SimulatedFileLock:
    """See FileLock; `share` returns one for a reader too, which outlives the broker."""

    def __init__(self, holders: list[Inode], inode: Inode) -> None:
        self._holders = holders
        self._inode = inode
        holders.append(inode)

    def release(self) -> None:
        if self._inode in self._holders:
            self._holders.remove(self._inode)


class SimulatedStorage:
    """See log.storage.Storage; besides, it crashes and fails on demand and counts calls."""

    def __init__(self, rng: random.Random | None = None, *, capacity_bytes: int = 1 << 40) -> None:
        self.rng = rng or random.Random(0)
        """Draws what a failed write or sync has done."""
        self.capacity_bytes = capacity_bytes
        self.calls: Counter[str] = Counter()
        """Calls of each operation, those that failed included."""
        self.lives = 0
        self.mutex = threading.RLock()
        self.locks: dict[str, str] = {}
        self.readers: list[Inode] = []
        """Files that readers in other processes have locked."""
        self._holders: list[Inode] = []
        self._names: dict[str, Inode] = {}
        self._durable_names: dict[str, Inode] = {}
        self._unsynced: list[tuple[str, dict[str, Inode | None]]] = []
        """In order: a directory, and the names that one step gave (an inode) or took (None) in it."""
        self._directories = {"/"}
        self._failures: list[tuple[int, str, int]] = []

    # -- on demand

    def crash(self, rng: random.Random) -> None:
        """Lose power: any legal part of what was unsynced survives, drawn from `rng`; open files and locks are gone."""
        with self.mutex:
            self.lives += 1
            self.locks.clear()
            self._holders.clear()
            self.readers.clear()
            self._failures.clear()
            for _, names in self._unsynced:
                if rng.random() < 0.5:
                    _apply(self._durable_names, names)
            self._unsynced.clear()
            self._names = dict(self._durable_names)
            for inode in {id(each): each for each in self._names.values()}.values():
                inode.forget(rng)
                inode.seen = bytearray(inode.platter)

    def kill(self) -> None:
        """End the process, not the power: open files and locks are gone, all that was written stays."""
        with self.mutex:
            self.lives += 1
            self.locks.clear()
            self._holders.clear()
            self._failures.clear()

    def share(self, path: str) -> SimulatedFileLock:
        """Lock a file as a reader in another process does."""
        return SimulatedFileLock(self.readers, self._names[path])

    def fail(self, error: int, *, after: int = 0, operation: str = "") -> None:
        """Make one call of `operation`, or of any, raise OSError(`error`) after the given number of good calls."""
        target = after + 1 + (self.calls[operation] if operation else self.calls.total())
        self._failures.append((target, operation, error))

    def content(self, path: str) -> bytearray:
        """Return the bytes of a file as readers see them, to be read or damaged; no call is counted."""
        return self._names[path].seen

    def damage(self, path: str, position: int, content: bytes) -> None:
        """Overwrite bytes on the platter, as a bad disk does."""
        inode = self._names[path]
        inode.seen[position : position + len(content)] = content
        inode.platter[position : position + len(content)] = content

    def truncate(self, path: str, size: int) -> None:
        """Cut a file off, on the platter too."""
        inode = self._names[path]
        del inode.seen[size:], inode.platter[size:]

    # -- for files

    def count_call(self, operation: str) -> None:
        self.calls[operation] += 1
        for failure in self._failures:
            target, wanted, error = failure
            count = self.calls[wanted] if wanted else self.calls.total()
            if count >= target and wanted in {"", operation}:
                self._failures.remove(failure)
                raise OSError(error, os.strerror(error))

    def take_space(self, length: int) -> None:
        if length > 0 and length > self._free():
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def _free(self) -> int:
        return self.capacity_bytes - sum(len(inode.seen) for inode in self._names.values())

    # -- the seam

    def open(self, path: str, *, create: bool = False, direct: bool = False, read_ahead: bool = True) -> SimulatedFile:
        with self.mutex:
            self.count_call("open")
            if path not in self._names:
                if not create or _parent(path) not in self._directories:
                    raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
                self._change(path, {path: Inode()})
            return SimulatedFile(self, self._names[path], is_direct=direct, is_writable=create)

    def rename(self, source: str, target: str) -> None:
        with self.mutex:
            self.count_call("rename")
            if source not in self._names:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), source)
            self._change(target, {source: None, target: self._names[source]})

    def link(self, source: str, target: str) -> None:
        with self.mutex:
            self.count_call("link")
            if source not in self._names:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), source)
            if target in self._names:
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), target)
            self._change(target, {target: self._names[source]})

    def unlink(self, path: str) -> None:
        with self.mutex:
            self.count_call("unlink")
            if path not in self._names:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
            self._change(path, {path: None})

    def remove_tree(self, path: str) -> None:
        with self.mutex:
            self.count_call("remove_tree")
            for name in [name for name in self._names if name.startswith(f"{path}/")]:
                self._change(name, {name: None})
            self._directories = {name for name in self._directories if not f"{name}/".startswith(f"{path}/")}

    def listdir(self, path: str) -> list[str]:
        with self.mutex:
            self.count_call("listdir")
            if path not in self._directories:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
            every = [*self._names, *self._directories]
            return sorted({name.rpartition("/")[2] for name in every if name != path and _parent(name) == path})

    def makedirs(self, path: str) -> None:
        with self.mutex:
            self.count_call("makedirs")
            while path not in self._directories:
                self._directories.add(path)
                path = _parent(path)

    def exists(self, path: str) -> bool:
        with self.mutex:
            self.count_call("exists")
            return path in self._names or path in self._directories

    def size(self, path: str) -> int:
        with self.mutex:
            self.count_call("size")
            if path not in self._names:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
            return len(self._names[path].seen)

    def sync_directory(self, path: str) -> None:
        with self.mutex:
            self.count_call("sync_directory")
            for directory, names in self._unsynced:
                if directory == path:
                    _apply(self._durable_names, names)
            self._unsynced = [step for step in self._unsynced if step[0] != path]

    def lock(self, path: str) -> SimulatedLock:
        with self.mutex:
            self.count_call("lock")
            if path in self.locks:
                raise LockedError(path, self.locks[path])
            self.locks[path] = ""
            if path not in self._names:
                self._change(path, {path: Inode()})
            return SimulatedLock(self, path)

    def try_lock(self, path: str) -> SimulatedFileLock | None:
        with self.mutex:
            self.count_call("hold")
            if path not in self._names:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
            inode = self._names[path]
            if path in self.locks or any(each is inode for each in (*self._holders, *self.readers)):
                return None
            return SimulatedFileLock(self._holders, inode)

    def free_bytes(self, path: str) -> int:
        with self.mutex:
            self.count_call("free_bytes")
            return max(0, self._free())

    def total_bytes(self, path: str) -> int:
        with self.mutex:
            self.count_call("total_bytes")
            return self.capacity_bytes

    def _change(self, path: str, names: dict[str, Inode | None]) -> None:
        _apply(self._names, names)
        self._unsynced.append((_parent(path), names))


def _apply(table: dict[str, Inode], names: dict[str, Inode | None]) -> None:
    for name, inode in names.items():
        if inode is None:
            table.pop(name, None)
        else:
            table[name] = inode


def _parent(path: str) -> str:
    return path.rpartition("/")[0] or "/"
