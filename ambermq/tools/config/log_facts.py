"""The figures of a log that the schedules of compaction and retention use."""

from dataclasses import dataclass

from ambermq.engine.compaction.plan import oldest_requested
from ambermq.engine.loop.durable_loop import DurableLoop
from ambermq.log.manifest.manifest import Manifest

__all__ = ["LogFacts", "facts_of", "history_bytes"]


@dataclass(frozen=True, slots=True)
class LogFacts:
    """The figures of a log at one moment. Sizes are in bytes."""

    log_bytes: int = 0
    """Of all sealed segments."""
    live_bytes: int = 0
    """Of the messages on queues."""
    history_bytes: int = 0
    """Of the sealed segments at or after the horizon."""
    room_bytes: int = 0
    """Free space for publishing."""
    active_bytes: int = 0
    """Of the segment that is written to."""
    disk_bytes: int = 0
    """The size of the file system; 0 is unknown."""
    requested_end: int = -1
    """The end of the oldest snapshot that a person requested; -1 if there is none."""
    next_offset: int = 0
    """The end of the newest sealed segment."""
    has_horizon: bool = False
    """Whether history was removed before."""


def history_bytes(manifest: Manifest) -> int:
    """Return the bytes of the sealed segments at or after the horizon."""
    begin = manifest.horizon.offset if manifest.horizon else 0
    return sum(one.size for one in manifest.sealed if one.base_offset >= begin)


def facts_of(engine: DurableLoop) -> LogFacts:
    """Return the figures of an engine's log."""
    manifest = engine.log.manifest
    requested = oldest_requested(manifest)
    return LogFacts(
        log_bytes=sum(one.size for one in manifest.sealed),
        live_bytes=sum(queue.size for queue in engine.state.queues.values()),
        history_bytes=history_bytes(manifest),
        room_bytes=engine.log.room_bytes(),
        active_bytes=engine.log.active_bytes,
        disk_bytes=engine.log.disk_bytes,
        requested_end=-1 if requested is None else requested.end,
        next_offset=manifest.sealed[-1].next_offset if manifest.sealed else 0,
        has_horizon=manifest.horizon is not None,
    )
