"""The result of a recovery, from which the log continues: the open files and their ends."""

from dataclasses import dataclass

from ambermq.log.config import LogConfig
from ambermq.log.format.segment import SegmentHeader
from ambermq.log.format.time_range import TimeRange
from ambermq.log.index.tables import TouchesOf
from ambermq.log.manifest.manifest import Manifest
from ambermq.log.read.body_store import BodyStore
from ambermq.log.storage.interface import File, Lock, Storage
from ambermq.log.storage.worker_threads import Workers
from ambermq.log.write.ballast import Ballast

__all__ = ["OpenFiles"]


@dataclass(frozen=True, slots=True)
class OpenFiles:
    """A new active segment, synced and named by the manifest, and everything else that the log needs."""

    storage: Storage
    """The disk."""
    directory: str
    """The log's directory."""
    config: LogConfig
    """The limits of the log."""
    workers: Workers
    """The worker threads; `bodies` has its lane already."""
    lock: Lock
    """The lock of the directory. The log releases it when it closes."""
    manifest: Manifest
    """The stored manifest. It names no spare, and `active` is the segment of `file`."""
    file: File
    """The active segment with its header and the copied batches. Nothing after `position` is allocated."""
    header: SegmentHeader
    """The header of the active segment."""
    position: int
    """The position of the next batch in the active segment."""
    next_offset: int
    """The offset of the next record."""
    durable_end: int
    """Everything below this offset is synced. No batch carries it yet."""
    now_us: int
    """The time at which the recovery began."""
    bodies: BodyStore
    """The bodies; it knows every segment, and the batches in the active one."""
    ballast: Ballast
    """The disk space that the log gives up when the disk is full."""
    touches_of: TouchesOf
    """The function that yields the keys of a batch, for the indexes of sealed segments."""
    times: TimeRange | None = None
    """The times of the copied records; None if there are none. The range may be wider."""
