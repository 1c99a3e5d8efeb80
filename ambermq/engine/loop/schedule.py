"""The schedule of the engine's steps: what is due now, three deadlines and a timer for the rest.

    condition                                  at most         then
    settlements wait, or their draft           lazy_write_ms   a step decides and writes them
    a written batch has no sync                lazy_sync_ms    its sync is requested
    no batch carries the current durable end   mark_ms         a mark is written
    a timer of the engine                      its time        a step carries it out

The command queue reports its commands, the loop the state of the log. The driver calls `due` after each read, and keeps
one timer, for `next_us`. All times are microseconds of the driver's clock, which never goes back.

Rule 1. A deadline begins and ends with its condition, and is never moved back in between.
Rule 2. A step at a deadline ends its condition, so the next deadline is later.
Rule 3. A small tick is stepped at once if no effect waits for the disk. While effects wait, few durable messages gather
        until the sync in progress ends: before that, nothing that they cause could leave. Many are stepped at the end
        of the event loop's iteration, so that they are decided and written while the disk syncs; a full tick at once.
Rule 4. While a step leaves work for the next one, small ticks are not stepped at once: the driver has a step scheduled.
"""

from collections.abc import Sized
from typing import Final, Literal, final

from ambermq.engine.config import EngineConfig
from ambermq.log.write.log import Log

__all__ = ["FOREVER_US", "FULL", "LATER", "NEVER", "NOW", "SOON", "SYNCED", "Due", "Schedule"]

FOREVER_US: Final = 1 << 62
"""A time that never comes."""

Due = Literal[0, 1, 2, 3, 4, 5]
"""When a step is wanted. They are plain numbers, since each read compares them."""
NEVER: Final = 0
"""No command waits."""
LATER: Final = 1
"""At `next_us`: no peer waits for the commands."""
SYNCED: Final = 2
"""When the sync in progress ends."""
SOON: Final = 3
"""At the end of the event loop's iteration, which may add commands."""
NOW: Final = 4
"""At once: the tick is small, and no effect waits for the disk."""
FULL: Final = 5
"""At once: the tick is full. A sync may have ended in the meantime."""

_LITTLE_BYTES_MAX: Final = 16_384
_GATHERED_BYTES_MAX: Final = 32_768


@final
class Schedule:
    """The conditions and deadlines of one engine; the command queue and the loop set its attributes."""

    __slots__ = (
        *("_count_max", "_queue", "_mark_us", "_size_max", "_sync_us", "_write_us"),
        *("count", "dirty", "has_lazy", "has_urgent", "is_continued", "is_prompt", "mark_by_us", "next_us", "size"),
        *("sync_by_us", "timer_us", "write_by_us"),
    )

    def __init__(self, config: EngineConfig, *, dirty: Sized, queue: Sized) -> None:
        """Start without a condition. `dirty` are the queues to dispatch, `queue` the effects that wait for the disk.

        Only their emptiness matters here.
        """
        self._count_max, self._size_max = config.tick_messages_max, config.tick_bytes_max
        self._write_us, self._sync_us, self._mark_us = (
            1000 * ms for ms in (config.lazy_write_ms, config.lazy_sync_ms, config.mark_ms)
        )
        self.dirty, self._queue = dirty, queue
        self.count = 0
        """The number of messages and settlements since the last step."""
        self.size = 0
        """The bytes of those messages."""
        self.has_urgent = False
        """Whether a command waits that must not be delayed."""
        self.is_prompt = False
        """Whether one of them may have an effect that waits for no sync: anything but durable messages."""
        self.has_lazy = False
        """Whether settlements wait that may be delayed."""
        self.is_continued = False
        """Whether the last step left work for the next one: a scan, a backlog or a command in parts."""
        self.write_by_us = self.sync_by_us = self.mark_by_us = FOREVER_US
        self.timer_us = FOREVER_US
        """When the engine itself has something to do: the loop sets it."""
        self.next_us = FOREVER_US
        """The earliest of these times, for the driver's timer."""

    @property
    def is_due(self) -> bool:
        """Return whether a step is wanted SOON or earlier."""
        return self.has_urgent or bool(self.dirty)

    def due(self, now_us: int) -> Due:
        """Return when a step is wanted for the commands so far."""
        if not self.has_urgent and not self.dirty:
            if not self.has_lazy:
                return NEVER
            if self.write_by_us == FOREVER_US:
                self.write_by_us = now_us + self._write_us
                self.next_us = min(self.next_us, self.write_by_us)
            return LATER
        if self.count >= self._count_max or self.size >= self._size_max:
            return FULL
        if not self._queue and not self.is_continued and self.size <= _LITTLE_BYTES_MAX:
            return NOW
        if self.is_prompt or self.dirty or self.is_continued or self.size > _GATHERED_BYTES_MAX:
            return SOON
        return SYNCED if self._queue else SOON

    def logged(self, now_us: int, log: Log) -> None:
        """Update the three conditions and their deadlines by the state of the log."""
        end = log.log_end
        is_unwritten = self.has_lazy or log.draft.next_offset > end
        is_unsynced, is_unmarked = end > log.requested_end, log.marked_end < log.durable_end >= end
        self.write_by_us = min(self.write_by_us, now_us + self._write_us) if is_unwritten else FOREVER_US
        self.sync_by_us = min(self.sync_by_us, now_us + self._sync_us) if is_unsynced else FOREVER_US
        self.mark_by_us = min(self.mark_by_us, now_us + self._mark_us) if is_unmarked else FOREVER_US
        self.next_us = min(self.write_by_us, self.sync_by_us, self.mark_by_us, self.timer_us)

    def make_due(self) -> None:
        """Make every deadline due: the next step writes all commands, and requests their sync."""
        self.write_by_us = self.sync_by_us = self.next_us = 0
