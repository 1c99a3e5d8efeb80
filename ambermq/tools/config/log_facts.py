"""The figures of a log that the schedules of compaction and retention use."""

from dataclasses import dataclass

from ambermq.engine.loop.durable_loop import DurableLoop

__all__ = ["LogFacts", "facts_of"]


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
    next_offset: int = 0
    """The end of the newest sealed segment."""
    has_horizon: bool = False
    """Whether history was removed before."""


def facts_of(engine: DurableLoop) -> LogFacts:
    """Return the figures of an engine's log."""
    manifest = engine.log.manifest
    begin = manifest.horizon.offset if manifest.horizon else 0
    return LogFacts(
        log_bytes=sum(one.size for one in manifest.sealed),
        live_bytes=sum(queue.size for queue in engine.state.queues.values()),
        history_bytes=sum(one.size for one in manifest.sealed if one.base_offset >= begin),
        room_bytes=engine.log.room_bytes(),
        next_offset=manifest.sealed[-1].next_offset if manifest.sealed else 0,
        has_horizon=manifest.horizon is not None,
    )
