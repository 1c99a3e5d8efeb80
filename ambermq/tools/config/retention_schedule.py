"""The schedule of retention, which deletes whole segments for their age or size, or for disk space. Pure.

Rule 1. Age and size say how much history is deleted. Without them the free space does: below `room_bytes_min` the
oldest whole segments without live messages are deleted, until a tenth more than that is free.
Rule 2. A run for disk space never deletes a snapshot that a person requested, nor moves the horizon past it.
Rule 3. A run for disk space is due again only if the last one deleted something, or if the log has grown since, or if
messages were settled or a requested snapshot was deleted since it began: a run may not see what is freed beside it.
Rule 4. A run for disk space that wins nothing is repeated at once with less history to keep, until none is kept. Old
messages may be settled in newer segments only, so a small step may win nothing.
Rule 5. A run for disk space is due early, while publishing still has room for the time of the run.
"""

from dataclasses import dataclass, replace
from typing import Final

from ambermq.tools.config.log_facts import LogFacts

__all__ = ["RetentionConfig", "RetentionSchedule"]

_AGE_DIVISOR: Final = 10
"""A run is due at a tenth above a limit, so that it deletes several segments at once."""
_AGE_CHECK_S_MAX: Final = 3600
_FACTOR: Final = 4
_ROOM_BYTES_MIN: Final = 512 << 20
_FILE_SYSTEM_DIVISOR: Final = 4
"""The default of `room_bytes_min` is at most this part of the file system."""


@dataclass(frozen=True, slots=True)
class RetentionConfig:
    """The keys of [retention]: which history the broker deletes by itself, and when."""

    age_s: int = 0
    """Maximum age of history; 0: no limit."""
    size_bytes: int = 0
    """The least bytes of the newest segments to keep; older segments are removed, whatever their age. 0: no limit."""
    by_room: bool = True
    """Whether the oldest history is deleted when less than `room_bytes_min` is free, besides age and size."""
    room_bytes_min: int = _ROOM_BYTES_MIN
    """Minimum free disk space; below it a run is due at once. The default is at most a quarter of the file system. 0:
    free space is not checked."""
    pause_s: int = 10
    """Between the end of a run and the start of the next."""
    archive: str = ""
    """Directory or URL of the Parquet files for removed events; empty: no archive."""

    @property
    def is_on(self) -> bool:
        """Whether retention is on."""
        return bool(self.age_s or self.size_bytes or self.room_bytes_min)

    def room_min(self, disk_bytes: int) -> int:
        """Return the minimum free space on a file system of `disk_bytes`; 0 is an unknown size."""
        if self.room_bytes_min != _ROOM_BYTES_MIN or not disk_bytes:
            return self.room_bytes_min
        return min(self.room_bytes_min, disk_bytes // _FILE_SYSTEM_DIVISOR)

    def arguments(self, *, kept_bytes: int | None = None) -> list[str]:
        """Return these settings as options of `ambermq log compact`.

        `kept_bytes` is the history that a run for disk space keeps; None for any other run.
        """
        sizes = [one for one in (self.size_bytes or None, kept_bytes) if one is not None]
        age = [f"{self.age_s}s"] if self.age_s else []
        size = [f"{min(sizes)}B"] if sizes else []
        kept = [part for text in age + size or ["all"] for part in ("--keep-history", text)]
        by_room = [] if kept_bytes is None else ["--keep-snapshots"]
        return ["--whole-segments", *kept, *by_room, *(["--archive", self.archive] if self.archive else [])]


class RetentionSchedule:
    """The schedule of one log."""

    __slots__ = (
        "_before",
        "_by_room_s",
        "_config",
        "_ended_s",
        "_factor",
        "_has_deleted",
        "_left",
        "_paused_until_s",
    )

    def __init__(self, config: RetentionConfig, now_s: float, *, grace_s: float = 0.0) -> None:
        """`now_s` is the time of a monotonic clock, as in all other methods; `grace_s` delays deletions by room."""
        self._config = config
        self._by_room_s = now_s + grace_s
        self._before = LogFacts()
        self._has_deleted = False
        self._factor = 1
        """The multiple of the needed bytes to free; it grows while runs win nothing."""
        self._ended_s = now_s
        self._paused_until_s = now_s
        self._left = LogFacts(next_offset=-1)

    def reconfigure(self, config: RetentionConfig) -> None:
        """Use another configuration; a pause that has begun goes on."""
        self._config = config

    def reason(self, now_s: float, facts: LogFacts) -> str:
        """Return the reason for a run now; empty if none is due."""
        if now_s < self._paused_until_s:
            return ""
        self._before = facts
        if self._is_full(now_s, facts):
            return "room"
        if self._is_long(facts):
            return "size"
        return "age" if self._is_old(now_s) else ""

    def ended(self, now_s: float, facts: LogFacts, *, kept_bytes: int | None = None) -> None:
        """Record the end of a run, successful or not, and the state of the log.

        `kept_bytes` is the history that a run for disk space kept.
        """
        before = self._before
        self._has_deleted = facts.log_bytes < before.log_bytes or facts.history_bytes < before.history_bytes
        self._ended_s = now_s
        live_bytes = max(before.live_bytes, facts.live_bytes)
        self._left = replace(facts, live_bytes=live_bytes, requested_end=before.requested_end)
        is_futile = not self._has_deleted and bool(kept_bytes)
        self._factor = self._factor * _FACTOR if is_futile else 1
        self._paused_until_s = now_s + (0 if is_futile else self._config.pause_s)

    def kept_bytes(self, now_s: float, facts: LogFacts) -> int | None:
        """Return the history that a run for disk space keeps; None if free space may not decide that.

        0 seals the active segment too: the messages of older segments may have been settled there.
        """
        if not self._config.by_room or now_s < self._by_room_s:
            return None
        minimum = self._config.room_min(facts.disk_bytes)
        needed_bytes = (minimum + minimum // _AGE_DIVISOR - facts.room_bytes) * self._factor
        if facts.history_bytes <= needed_bytes:
            return 0
        return facts.history_bytes + facts.active_bytes - needed_bytes

    def _is_full(self, now_s: float, facts: LogFacts) -> bool:
        config, left = self._config, self._left
        has_grown = facts.next_offset > max(left.next_offset, 0)
        has_freed = facts.live_bytes < left.live_bytes or facts.requested_end != left.requested_end
        by_room = config.by_room and now_s >= self._by_room_s
        has_candidates = bool(config.age_s or config.size_bytes) or facts.has_horizon or by_room
        is_low = facts.room_bytes < config.room_min(facts.disk_bytes)
        return is_low and (has_grown or has_freed or self._has_deleted or self._factor > 1) and has_candidates

    def _is_long(self, facts: LogFacts) -> bool:
        bound = self._config.size_bytes
        return bool(bound) and facts.history_bytes >= max(bound, self._left.history_bytes) * (1 + 1 / _AGE_DIVISOR)

    def _is_old(self, now_s: float) -> bool:
        check_s = min(self._config.age_s / _AGE_DIVISOR, _AGE_CHECK_S_MAX)
        return bool(self._config.age_s) and now_s - self._ended_s >= check_s
