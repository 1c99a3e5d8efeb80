"""The storage interface on the machine's file system: plain files by descriptor, and no other state."""

import errno
import fcntl
import mmap
import os
import shutil
import stat
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from ambermq.log.buffer import Buffer
from ambermq.log.errors import LockedError
from ambermq.log.storage.private_file import sync_directory
from ambermq.log.storage.writeback import write_back

__all__ = ["DiskFile", "DiskFileLock", "DiskLock", "DiskStorage"]

_BUFFERS_MAX = 1024
"""IOV_MAX of Linux: the most buffers for one pwritev."""

_BLOCK_BYTES = 4096
_FILE_MODE = 0o600
_DIRECTORY_MODE = 0o700
"""The files hold the bodies of messages: no other user reads them."""
_ZEROS = bytes(1024 * 1024)
_PART_BYTES = 256 * 1024
"""The most bytes of one read: a sync on the same disk waits behind it, for less than a millisecond."""


class DiskFile:
    """One open file."""

    __slots__ = ("_fd", "is_direct")

    def __init__(self, fd: int, *, is_direct: bool = False) -> None:
        """Own `fd`. `is_direct` says that it was opened with O_DIRECT, which reads whole blocks only."""
        self._fd = fd
        self.is_direct = is_direct
        """Whether reads bypass the page cache and read whole blocks."""

    def write(self, buffers: Sequence[Buffer], position: int) -> None:
        """See File."""
        if len(buffers) == 1:
            size = len(buffers[0])
            written = os.pwrite(self._fd, buffers[0], position)
        elif len(buffers) <= _BUFFERS_MAX:
            size = sum(map(len, buffers))
            written = os.pwritev(self._fd, buffers, position)
        else:
            size, written = sum(map(len, buffers)), 0
        if written != size:
            self._write_rest(buffers, position, written)

    def _write_rest(self, buffers: Sequence[Buffer], position: int, written: int) -> None:
        """Write what follows the first `written` bytes, after a short write or for too many buffers for one call."""
        rest = [memoryview(buffer) for buffer in buffers if len(buffer)]
        skip, done = written, 0
        while True:
            while done < len(rest) and skip >= len(rest[done]):
                skip -= len(rest[done])
                done += 1
            if done == len(rest):
                return
            rest[done] = rest[done][skip:]
            position += written
            skip = written = os.pwritev(self._fd, rest[done : done + _BUFFERS_MAX], position)
            if not written:
                raise OSError(errno.EIO, "the disk accepted no byte")

    def read(self, length: int, position: int) -> bytes:
        """See File."""
        if self.is_direct:
            return self._read_direct(length, position)
        if length <= _PART_BYTES:
            chunk = os.pread(self._fd, length, position)
            if len(chunk) == length or not chunk:
                return chunk
        # One buffer: the kernel would give pages to the bytes of each part, which takes longer than to read them.
        count, buffer = 0, memoryview(bytearray(length))
        while part := os.preadv(self._fd, [buffer[count : count + _PART_BYTES]], position + count):
            count += part
        return bytes(buffer[:count])

    def _read_direct(self, length: int, position: int) -> bytes:
        start = position - position % _BLOCK_BYTES
        end = position + length
        block_bytes = end + -end % _BLOCK_BYTES - start
        if not length:
            return b""
        with mmap.mmap(-1, block_bytes) as block:  # an anonymous map is page-aligned, which O_DIRECT needs
            count = 0
            while count < block_bytes and count % _BLOCK_BYTES == 0:
                with memoryview(block) as view, view[count:] as target:
                    read_count = os.preadv(self._fd, [target], start + count)
                if not read_count:
                    break
                count += read_count
            return bytes(block[position - start : min(end - start, count)])

    def read_now(self, length: int, position: int) -> bytes | None:
        """See File."""
        buffer = bytearray(length)
        try:
            count = os.preadv(self._fd, [buffer], position, os.RWF_NOWAIT)
        except OSError as error:
            if error.errno in {errno.EAGAIN, errno.EOPNOTSUPP}:
                return None
            raise
        return bytes(buffer) if count == length else None

    def fileno(self) -> int:
        """See File."""
        return self._fd

    def datasync(self) -> None:
        """See File."""
        os.fdatasync(self._fd)

    def sync(self) -> None:
        """See File."""
        os.fsync(self._fd)

    def write_back(self, position: int, length: int, *, wait: bool) -> None:
        """See File."""
        write_back(self._fd, position, length, wait=wait)

    def allocate(self, position: int, length: int, *, zero: bool) -> None:
        """See File."""
        if not zero:
            os.posix_fallocate(self._fd, position, length)
            return
        end = position + length
        for start in range(position, end, len(_ZEROS)):
            self.write([_ZEROS[: end - start]], start)

    def truncate(self, length: int) -> None:
        """See File."""
        os.ftruncate(self._fd, length)

    def drop_cache(self, position: int, length: int) -> None:
        """See File."""
        os.posix_fadvise(self._fd, position, length, os.POSIX_FADV_DONTNEED)

    def size(self) -> int:
        """See File."""
        return os.fstat(self._fd).st_size

    def close(self) -> None:
        """See File."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


class DiskLock:
    """An flock on a lock file."""

    __slots__ = ("_fd",)

    def __init__(self, fd: int) -> None:
        """Own `fd`, which holds the lock."""
        self._fd = fd

    def write(self, text: str) -> None:
        """See Lock."""
        os.ftruncate(self._fd, 0)
        os.pwrite(self._fd, text.encode(), 0)

    def release(self) -> None:
        """See Lock. The text is removed first, so that it never describes a later process that locks."""
        if self._fd >= 0:
            os.ftruncate(self._fd, 0)
            os.close(self._fd)
            self._fd = -1


class DiskFileLock:
    """An exclusive flock on a file that readers lock too, so nothing is written to it."""

    __slots__ = ("_fd",)

    def __init__(self, fd: int) -> None:
        """Own `fd`, which holds the lock."""
        self._fd = fd

    def is_at(self, path: str) -> bool:
        """Return whether `path` names the locked file, which may have been renamed or removed before the lock."""
        return _is_at(self._fd, path)

    def release(self) -> None:
        """See FileLock."""
        os.close(self._fd)


def _is_at(fd: int, path: str) -> bool:
    opened = os.fstat(fd)
    try:
        found = os.stat(path)  # noqa: PTH116 - like fstat above
    except FileNotFoundError:
        return False
    return (opened.st_dev, opened.st_ino) == (found.st_dev, found.st_ino)


class DiskStorage:
    """The file system of the machine."""

    __slots__ = ()

    def open(self, path: str, *, create: bool = False, direct: bool = False, read_ahead: bool = True) -> DiskFile:
        """See Storage."""
        flags = os.O_CLOEXEC | (os.O_RDWR | os.O_CREAT if create else os.O_RDONLY)
        if direct:
            try:
                return DiskFile(os.open(path, flags | os.O_DIRECT, _FILE_MODE), is_direct=True)
            except OSError as error:
                if error.errno != errno.EINVAL:  # EINVAL: this file system has no O_DIRECT
                    raise
        fd = os.open(path, flags, _FILE_MODE)
        if not create and stat.S_ISDIR(os.fstat(fd).st_mode):
            # A read would fail with an error that names no path.
            os.close(fd)
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        if not read_ahead:
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_RANDOM)
        return DiskFile(fd)

    def rename(self, source: str, target: str) -> None:
        """See Storage."""
        Path(source).replace(target)

    def link(self, source: str, target: str) -> None:
        """See Storage."""
        os.link(source, target)

    def unlink(self, path: str) -> None:
        """See Storage."""
        Path(path).unlink()

    def remove_tree(self, path: str) -> None:
        """See Storage."""
        with suppress(FileNotFoundError):
            shutil.rmtree(path)

    def listdir(self, path: str) -> list[str]:
        """See Storage."""
        return sorted(entry.name for entry in os.scandir(path))

    def makedirs(self, path: str) -> None:
        """See Storage."""
        target = Path(path).absolute()
        missing = [name for name in (target, *target.parents) if not name.is_dir()]
        target.mkdir(mode=_DIRECTORY_MODE, parents=True, exist_ok=True)
        for name in missing:
            self.sync_directory(str(name.parent))

    def exists(self, path: str) -> bool:
        """See Storage."""
        return os.path.lexists(path)

    def size(self, path: str) -> int:
        """See Storage."""
        return Path(path).stat().st_size

    def sync_directory(self, path: str) -> None:
        """See Storage."""
        sync_directory(path)

    def lock(self, path: str) -> DiskLock:
        """See Storage."""
        while True:
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, _FILE_MODE)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                # A failed first start removes its lock file: a lock on the removed file would exclude no other process.
                if _is_at(fd, path):
                    return DiskLock(fd)
                os.close(fd)
            except BlockingIOError as error:
                holder = os.pread(fd, 1024, 0).decode(errors="replace")
                os.close(fd)
                raise LockedError(path, holder) from error
            except OSError:
                os.close(fd)
                raise

    def try_lock(self, path: str) -> DiskFileLock | None:
        """See Storage."""
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(fd)
            return None
        except OSError:
            os.close(fd)
            raise
        return DiskFileLock(fd)

    def free_bytes(self, path: str) -> int:
        """See Storage."""
        status = os.statvfs(path)
        return status.f_bavail * status.f_frsize

    def total_bytes(self, path: str) -> int:
        """See Storage."""
        status = os.statvfs(path)
        return status.f_blocks * status.f_frsize
