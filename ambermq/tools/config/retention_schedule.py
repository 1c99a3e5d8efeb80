"""The schedule of retention, which deletes whole segments for their age or size, or for disk space. Pure.

Rule 1. Only age and size say how much history is deleted. A full disk makes a run due at once. Without limits a run
deletes the segments below the horizon whose messages are all settled.
Rule 2. A run is due again only if history has grown since the last one, or time has passed.
Rule 3. A run for disk space is due early, while publishing still has room for the time of the run.
"""

from dataclasses import dataclass
from typing import Final

from ambermq.tools.config.log_facts import LogFacts

__all__ = ["RetentionConfig", "RetentionSchedule"]

_AGE_DIVISOR: Final = 10
"""A run is due at a tenth above a limit, so that it deletes several segments at once."""
_AGE_CHECK_S_MAX: Final = 3600


@dataclass(frozen=True, slots=True)
class RetentionConfig:
    """The keys of [retention]: which history the broker deletes by itself, and when."""

    age_s: int = 0
    """Maximum age of history; 0: no limit."""
    size_bytes: int = 0
    """The least bytes of the newest segments to keep; older segments are removed, whatever their age. 0: no limit."""
    room_bytes_min: int = 512 << 20
    """Minimum free disk space; below it a run is due at once. 0: free space is not checked."""
    pause_s: int = 10
    """Between the end of a run and the start of the next."""
    archive: str = ""
    """Directory or URL of the Parquet files for removed events; empty: no archive."""

    @property
    def is_on(self) -> bool:
        """Whether retention is on."""
        return bool(self.age_s or self.size_bytes or self.room_bytes_min)

    def arguments(self) -> list[str]:
        """Return these settings as options of `ambermq log compact`."""
        age = [f"{self.age_s}s"] if self.age_s else []
        size = [f"{self.size_bytes}B"] if self.size_bytes else []
        kept = [part for text in age + size or ["all"] for part in ("--keep-history", text)]
        return ["--whole-segments", *kept, *(["--archive", self.archive] if self.archive else [])]


class RetentionSchedule:
    """The schedule of one log."""

    __slots__ = ("_config", "_ended_s", "_left", "_paused_until_s")

    def __init__(self, config: RetentionConfig, now_s: float) -> None:
        """`now_s` is the time of a monotonic clock, as in all other methods."""
        self._config = config
        self._ended_s = now_s
        self._paused_until_s = now_s
        self._left = LogFacts(next_offset=-1)

    def reason(self, now_s: float, facts: LogFacts) -> str:
        """Return the reason for a run now; empty if none is due."""
        if now_s < self._paused_until_s:
            return ""
        if self._is_full(facts):
            return "room"
        if self._is_long(facts):
            return "size"
        return "age" if self._is_old(now_s) else ""

    def ended(self, now_s: float, facts: LogFacts) -> None:
        """Record the end of a run, successful or not, and the state of the log."""
        self._ended_s = now_s
        self._paused_until_s = now_s + self._config.pause_s
        self._left = facts

    def _is_full(self, facts: LogFacts) -> bool:
        config = self._config
        has_grown = facts.next_offset > max(self._left.next_offset, 0)
        has_candidates = bool(config.age_s or config.size_bytes) or facts.has_horizon
        return facts.room_bytes < config.room_bytes_min and has_grown and has_candidates

    def _is_long(self, facts: LogFacts) -> bool:
        bound = self._config.size_bytes
        return bool(bound) and facts.history_bytes >= max(bound, self._left.history_bytes) * (1 + 1 / _AGE_DIVISOR)

    def _is_old(self, now_s: float) -> bool:
        check_s = min(self._config.age_s / _AGE_DIVISOR, _AGE_CHECK_S_MAX)
        return bool(self._config.age_s) and now_s - self._ended_s >= check_s
