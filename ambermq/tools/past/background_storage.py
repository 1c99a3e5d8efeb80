"""The disk with a limit on reads, for a process that reads the log of a running broker.

Rule 1. While the broker is busy, reads are limited in bytes a second and in processor time. The broker's syncs wait for
a disk that is busy with reads, and niceness does not help them. `python -m bench --only beside` measures the broker
while a reader runs; AMBERMQ_READ_RATE=0 removes the limit.
Rule 2. Beside an idle broker reads have no limit.
Rule 3. A compaction has a limit of its own (`--rate`), which holds whether the broker is busy or not.
Rule 4. Writes through this storage have no limit.
"""

import os
import time
from contextlib import suppress
from pathlib import Path
from typing import Final, final

from ambermq.log.manifest.writer_lock import writer_of
from ambermq.log.read.log_reader import LogReader, open_reader
from ambermq.log.storage.disk import DiskFile, DiskStorage
from ambermq.log.storage.interface import Storage
from ambermq.tools.past.rate_limit import RateLimit
from ambermq.tools.terminal.errors import ToolError
from ambermq.tools.terminal.exit_codes import ExitCode

__all__ = ["BackgroundStorage", "BrokerLoad", "limited_storage", "open_log", "storage_of"]

_PROCESSOR_SHARE: Final = 0.25
"""The share of one processor that a reader may use while the broker is busy."""
_RATE_VARIABLE: Final = "AMBERMQ_READ_RATE"
_READ_MIB_PER_S: Final = 32
_BUSY_SHARE: Final = 0.1
"""A broker that uses more than this share of a processor is busy."""
_CHECK_S: Final = 0.25


class BrokerLoad:
    """The processor load of the broker that serves the log, measured periodically."""

    __slots__ = ("_checked_s", "_cpu_s", "_is_busy", "_pid")

    def __init__(self, pid: int) -> None:
        """Measure the process `pid`; it counts as busy until the first measurement."""
        self._pid = pid
        self._is_busy = True
        self._checked_s = time.monotonic()
        self._cpu_s = self._used()

    def is_busy(self) -> bool:
        """Return whether the broker recently used more than a tenth of a processor; False if that is unknown."""
        now = time.monotonic()
        if now - self._checked_s >= _CHECK_S:
            used = self._used()
            self._is_busy = used - self._cpu_s > _BUSY_SHARE * (now - self._checked_s)
            self._checked_s, self._cpu_s = now, used
        return self._is_busy

    def _used(self) -> float:
        """Return the processor time of the broker in seconds (proc_pid_stat(5): fields 14 and 15)."""
        with suppress(OSError, ValueError, IndexError):
            words = Path(f"/proc/{self._pid}/stat").read_text().rpartition(")")[2].split()
            return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")
        return 0.0


@final
class _BackgroundFile(DiskFile):
    """A file with limited reads."""

    __slots__ = ("_limit", "_load")

    def __init__(self, fd: int, limit: RateLimit, load: BrokerLoad | None, *, is_direct: bool) -> None:
        super().__init__(fd, is_direct=is_direct)
        self._limit = limit
        self._load = load

    def read(self, length: int, position: int) -> bytes:
        """See File."""
        content = super().read(length, position)
        if self._load is None or self._load.is_busy():
            self._limit.spend(len(content))
        else:
            self._limit.reset()
        return content


@final
class BackgroundStorage(DiskStorage):
    """The file system with one read limit for all files, always or while a broker is busy."""

    __slots__ = ("_limit", "_load")

    def __init__(self, limit: RateLimit, load: BrokerLoad | None = None) -> None:
        """Apply `limit` while `load` is busy; without a load always."""
        self._limit = limit
        self._load = load

    def open(self, path: str, *, create: bool = False, direct: bool = False, read_ahead: bool = True) -> DiskFile:
        """See Storage."""
        file = super().open(path, create=create, direct=direct, read_ahead=read_ahead)
        return _BackgroundFile(file.fileno(), self._limit, self._load, is_direct=file.is_direct)


def storage_of(directory: str) -> Storage:
    """Return the storage for reads of a log: limited while the broker that serves it is busy.

    The environment has the rate; 0 is no limit. Raises ToolError if it is not a number.
    """
    rate, pid = _rate(), writer_of(directory)
    if not rate or pid is None:
        return DiskStorage()
    return BackgroundStorage(RateLimit(rate << 20, processor_share=_PROCESSOR_SHARE), BrokerLoad(pid))


def limited_storage(bytes_per_s: int) -> Storage:
    """Return the storage for reads of at most `bytes_per_s`; 0 is no limit."""
    return BackgroundStorage(RateLimit(bytes_per_s)) if bytes_per_s else DiskStorage()


def open_log(directory: str) -> LogReader:
    """Open the log in a directory as `open_reader` does, through its `storage_of`."""
    return open_reader(directory, storage=storage_of(directory))


def _rate() -> int:
    """Return the read limit in MiB a second, 0 for none; raise ToolError if the environment has no number."""
    text = os.environ.get(_RATE_VARIABLE, "")
    if text and not (text.isascii() and text.isdigit()):
        raise ToolError(
            "invalid read rate",
            where=_RATE_VARIABLE,
            expected="MiB a second, 0 for no limit",
            found=repr(text),
            code=ExitCode.USAGE,
        )
    return int(text) if text else _READ_MIB_PER_S
