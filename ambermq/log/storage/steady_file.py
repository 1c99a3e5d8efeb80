"""A new file that goes to the disk while it is written, in small parts.

Rule 1. At most two parts are on their way to the disk. So a sync of a log on the same disk waits behind that much, and
        not behind gigabytes that are synced at the end.
Rule 2. After an error of the disk nothing of the file can be trusted.
"""

from collections.abc import Sequence
from typing import Final, final

from ambermq.log.buffer import Buffer
from ambermq.log.storage.interface import File

__all__ = ["PART_BYTES", "SteadyFile", "write_back_whole"]

PART_BYTES: Final = 512 * 1024
"""The size of a part: a disk writes it in two milliseconds. With smaller ones it writes less in a second."""


@final
class SteadyFile:
    """A file that is written from its begin to its end. It belongs to the caller, which closes it."""

    __slots__ = ("_begun", "_file", "_is_cached", "_stored", "position")

    def __init__(self, file: File, position: int = 0, *, is_cached: bool = True) -> None:
        """Write from `position` on. Without `is_cached` the page cache does not keep what is on the disk."""
        self._file = file
        self._is_cached = is_cached
        self.position = position
        """The end of what was written."""
        self._begun = self._stored = position
        """The end of what is on its way to the disk, and of what is there."""

    def write(self, buffers: Sequence[Buffer]) -> None:
        """Append buffers. Raises OSError."""
        self._file.write(buffers, self.position)
        self.position += sum(map(len, buffers))
        while self.position - self._begun >= PART_BYTES:
            self._file.write_back(self._begun, PART_BYTES, wait=False)
            self._await_begun()
            self._begun += PART_BYTES

    def sync(self) -> None:
        """Make the file durable. Raises OSError."""
        self._file.sync()
        if not self._is_cached:
            self._file.drop_cache(0, 0)
        self._begun = self._stored = self.position

    def restart(self) -> None:
        """Remove all that is in the file. Raises OSError."""
        self._file.truncate(0)
        self._begun = self._stored = self.position = 0

    def _await_begun(self) -> None:
        """Wait for the parts before the one that has begun now."""
        length = self._begun - self._stored
        if length:
            self._file.write_back(self._stored, length, wait=True)
            if not self._is_cached:
                self._file.drop_cache(self._stored, length)
            self._stored = self._begun


def write_back_whole(file: File) -> None:
    """Write a file that another library has made to the disk, part by part. It is not durable then. Raises OSError."""
    for position in range(0, file.size(), PART_BYTES):
        file.write_back(position, PART_BYTES, wait=True)
