"""When the engine is stepped: what is due now, and three deadlines for what is not.

    waits                                  no longer than    then
    settlements, and what they have drafted  lazy_write_ms   step: they are decided and written
    a written batch without a sync           lazy_sync_ms    its sync is asked for
    a durable end that no batch carries      mark_ms         a mark is written

The command queue reports what was added, the loop what the log holds. The driver asks `due` after each read, tick and
completion, and keeps one timer, for `next_us`. All times are microseconds of the driver's clock, which never goes back.

Rule 1. A deadline begins when its condition does, ends when it ends, and is never moved back in between.
Rule 2. A step at a deadline ends its condition, so that the next deadline lies ahead.
Rule 3. What is little is stepped at once where nothing waits for the disk: what comes next is gathered while its sync
        runs. A full tick is stepped at once in any case; all else at the end of the event loop's iteration.
"""

from collections.abc import Sized
from typing import Final, Literal, final

from ambermq.engine.config import EngineConfig
from ambermq.log.write.log import Log

__all__ = ["FOREVER_US", "FULL", "LATER", "NEVER", "NOW", "SOON", "Due", "Schedule"]

FOREVER_US: Final = 1 << 62
"""A time that never comes."""

Due = Literal[0, 1, 2, 3, 4]
"""When a step is wanted; plain numbers, since it is asked with each read."""
NEVER: Final = 0
"""Nothing was gathered."""
LATER: Final = 1
"""At `next_us`: no peer waits for what was gathered."""
SOON: Final = 2
"""At the end of the event loop's iteration: more may come until then."""
NOW: Final = 3
"""At once: it is little, and nothing waits for the disk."""
FULL: Final = 4
"""At once: it is as much as a tick takes. A sync may have ended meanwhile."""

_LITTLE_BYTES_MAX: Final = 16_384


@final
class Schedule:
    """The reasons and deadlines of one engine; plain columns, which those that report set themselves."""

    __slots__ = (
        *("_count_max", "_line", "_mark_us", "_size_max", "_sync_us", "_write_us"),
        *("count", "dirty", "has_lazy", "has_urgent", "mark_by_us", "next_us", "size", "sync_by_us", "write_by_us"),
    )

    def __init__(self, config: EngineConfig, *, dirty: Sized, line: Sized) -> None:
        """Wait for nothing. `dirty` holds the queues worth a look, `line` the effects that wait for the disk.

        Of those two only emptiness is looked at.
        """
        self._count_max, self._size_max = config.tick_messages_max, config.tick_bytes_max
        self._write_us, self._sync_us, self._mark_us = (
            1000 * ms for ms in (config.lazy_write_ms, config.lazy_sync_ms, config.mark_ms)
        )
        self.dirty, self._line = dirty, line
        self.count = 0
        """Messages and settlements that were gathered since the last step."""
        self.size = 0
        """Bytes of those messages."""
        self.has_urgent = False
        """A command was gathered that may not wait."""
        self.has_lazy = False
        """Settlements were gathered that no peer waits for."""
        self.write_by_us = self.sync_by_us = self.mark_by_us = FOREVER_US
        self.next_us = FOREVER_US
        """The earliest of them: when the driver's timer is to fire."""

    @property
    def is_due(self) -> bool:
        """Whether a step is wanted SOON at least."""
        return self.has_urgent or bool(self.dirty)

    def due(self, now_us: int) -> Due:
        """Return when a step is wanted, by what was gathered until now."""
        if not self.has_urgent and not self.dirty:
            if not self.has_lazy:
                return NEVER
            if self.write_by_us == FOREVER_US:
                self.write_by_us = now_us + self._write_us
                self.next_us = min(self.next_us, self.write_by_us)
            return LATER
        if self.count >= self._count_max or self.size >= self._size_max:
            return FULL
        return SOON if self._line or self.size > _LITTLE_BYTES_MAX else NOW

    def logged(self, now_us: int, log: Log) -> None:
        """Note how far the log is: each of the three conditions holds from now on, still, or no longer."""
        end = log.log_end
        is_unwritten = self.has_lazy or log.draft.next_offset > end
        is_unsynced, is_unmarked = end > log.requested_end, log.marked_end < log.durable_end >= end
        self.write_by_us = min(self.write_by_us, now_us + self._write_us) if is_unwritten else FOREVER_US
        self.sync_by_us = min(self.sync_by_us, now_us + self._sync_us) if is_unsynced else FOREVER_US
        self.mark_by_us = min(self.mark_by_us, now_us + self._mark_us) if is_unmarked else FOREVER_US
        self.next_us = min(self.write_by_us, self.sync_by_us, self.mark_by_us)

    def hurry(self) -> None:
        """Make everything due: the next step writes all that was gathered, and asks for its sync."""
        self.write_by_us = self.sync_by_us = self.next_us = 0
