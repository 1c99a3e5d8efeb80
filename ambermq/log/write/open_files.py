"""What recovery hands to the log that goes on from it: the open files and where everything ends."""

from dataclasses import dataclass

from ambermq.log.config import LogConfig
from ambermq.log.format.segment import SegmentHeader
from ambermq.log.index.tables import TouchesOf
from ambermq.log.manifest.manifest import Manifest
from ambermq.log.read.body_store import BodyStore
from ambermq.log.storage.interface import File, Lock, Storage
from ambermq.log.storage.worker_threads import Workers

__all__ = ["OpenFiles"]


@dataclass(frozen=True, slots=True)
class OpenFiles:
    """An active segment that was just made, synced and named by the manifest."""

    storage: Storage
    """The disk."""
    directory: str
    """The log's directory."""
    config: LogConfig
    """Its limits."""
    workers: Workers
    """Threads beside the loop; `bodies` has its lane already."""
    lock: Lock
    """Of the directory; the log releases it when it closes."""
    manifest: Manifest
    """As stored: no spare is named, `active` is the segment below."""
    file: File
    """The active segment, with its header and what was copied; nothing ahead of `position` is allocated."""
    header: SegmentHeader
    """Of the active segment."""
    position: int
    """Where the next batch goes in it."""
    next_offset: int
    """The offset that the next record gets."""
    durable_end: int
    """Everything below was synced; no batch carries it yet."""
    now_us: int
    """When recovery began."""
    bodies: BodyStore
    """Knows every segment and the batches in the active one so far."""
    touches_of: TouchesOf
    """What the records of a batch name, for the indexes of sealed segments."""
