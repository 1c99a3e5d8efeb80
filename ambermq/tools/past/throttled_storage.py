"""The disk for a process that reads a log beside the broker that writes it: every read has its pace.

Rule 1. While the broker is busy, reads keep to a rate, and to a share of a processor: syncs wait for a disk that is
busy with reads, and niceness does not help them. `python -m bench --only beside` tells what is left of it; with
AMBERMQ_READ_RATE=0, what it would be.
Rule 2. Beside a broker with little to do they are as fast as can be.
Rule 3. Only reads are paced: whoever writes through this storage writes as through any other.
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

__all__ = ["Neighbour", "ThrottledStorage", "open_log", "reading_storage"]

_PROCESSOR_SHARE: Final = 0.25
"""Of one processor, beside a running broker."""
_RATE_VARIABLE: Final = "AMBERMQ_READ_RATE"
_READ_MIB_PER_S: Final = 32
_BUSY_SHARE: Final = 0.1
"""Of one processor: a broker that uses more is busy."""
_LOOK_S: Final = 0.25


class Neighbour:
    """The process that serves the log; whether it is busy is looked at now and then."""

    __slots__ = ("_cpu_s", "_is_busy", "_looked_s", "_pid")

    def __init__(self, pid: int) -> None:
        """Take it for busy at first."""
        self._pid = pid
        self._is_busy = True
        self._looked_s = time.monotonic()
        self._cpu_s = self._used()

    def is_busy(self) -> bool:
        """Return whether it used more than a tenth of a processor lately; not where that cannot be told."""
        now = time.monotonic()
        if now - self._looked_s >= _LOOK_S:
            used = self._used()
            self._is_busy = used - self._cpu_s > _BUSY_SHARE * (now - self._looked_s)
            self._looked_s, self._cpu_s = now, used
        return self._is_busy

    def _used(self) -> float:
        """Return the processor time that it has used, in seconds (proc_pid_stat(5): fields 14 and 15)."""
        with suppress(OSError, ValueError, IndexError):
            words = Path(f"/proc/{self._pid}/stat").read_text().rpartition(")")[2].split()
            return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")
        return 0.0


@final
class _PacedFile(DiskFile):
    """A file whose reads wait for their turn."""

    __slots__ = ("_neighbour", "_pace")

    def __init__(self, fd: int, pace: RateLimit, neighbour: Neighbour, *, is_direct: bool) -> None:
        super().__init__(fd, is_direct=is_direct)
        self._pace = pace
        self._neighbour = neighbour

    def read(self, length: int, position: int) -> bytes:
        """See File."""
        content = super().read(length, position)
        if self._neighbour.is_busy():
            self._pace.spend(len(content))
        else:
            self._pace.begin_anew()
        return content


@final
class ThrottledStorage(DiskStorage):
    """The file system of the machine, read at a pace that all its files share while a broker is busy."""

    __slots__ = ("_neighbour", "_pace")

    def __init__(self, pace: RateLimit, neighbour: Neighbour) -> None:
        """Read at this pace."""
        self._pace = pace
        self._neighbour = neighbour

    def open(self, path: str, *, create: bool = False, direct: bool = False) -> DiskFile:
        """See Storage."""
        file = super().open(path, create=create, direct=direct)
        return _PacedFile(file.fileno(), self._pace, self._neighbour, is_direct=file.is_direct)


def reading_storage(directory: str) -> Storage:
    """Return the disk to read the log in a directory from: at a pace while a broker that serves it is busy.

    The environment says how fast; 0 is no bound. Raises ToolError where it names no number.
    """
    rate, pid = _rate(), writer_of(directory)
    if not rate or pid is None:
        return DiskStorage()
    return ThrottledStorage(RateLimit(rate << 20, processor_share=_PROCESSOR_SHARE), Neighbour(pid))


def open_log(directory: str) -> LogReader:
    """Open the log in a directory as `open_reader`, to be read from its `reading_storage`."""
    return open_reader(directory, storage=reading_storage(directory))


def _rate() -> int:
    """Return the MiB a second that may be read, 0 for no bound; ToolError where the environment names no number."""
    text = os.environ.get(_RATE_VARIABLE, "")
    if text and not (text.isascii() and text.isdigit()):
        raise ToolError(
            "no rate to read at",
            where=_RATE_VARIABLE,
            expected="MiB a second, 0 for no bound",
            found=repr(text),
            code=ExitCode.USAGE,
        )
    return int(text) if text else _READ_MIB_PER_S
