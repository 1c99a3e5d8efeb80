"""The next segment's file, made before it is needed."""

from contextlib import suppress
from typing import NamedTuple

from ambermq.log.config import LogConfig
from ambermq.log.storage.interface import File

__all__ = ["Spare", "close_spare", "segment_bytes"]


class Spare(NamedTuple):
    """A segment file that is ready for use: synced and named in the manifest."""

    file_id: int
    size: int
    """The size at which the segment is full."""

    file: File
    allocated_bytes: int = 0
    """The bytes that are allocated: none, or `size`."""


def segment_bytes(config: LogConfig, earlier_bytes: int) -> int:
    """Return the size of the segment after `earlier_bytes` of segments: by default 4, 8, 16, 32, 64, 64 MiB."""
    smallest = config.segment_bytes_min
    return min(config.segment_bytes_max, smallest + earlier_bytes + -earlier_bytes % smallest)


def close_spare(spare: Spare) -> None:
    """Close a spare, and return its space to the disk: it holds nothing."""
    with suppress(OSError):
        spare.file.truncate(0)
    spare.file.close()
