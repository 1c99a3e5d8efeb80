"""When the broker lets whole segments go by itself: history got too old or too long, or the disk is filling up. Pure.

Rule 1. How much history goes is for age and size alone to say. A full disk only asks at once; where neither bound is
set what goes are segments below the horizon, whose last messages have been finished since.
Rule 2. What one run has left asks for no other: history must have grown, or some time passed.
Rule 3. A disk is asked about early, while there is still room to publish for as long as a run takes.
"""

from dataclasses import dataclass
from typing import Final

from ambermq.tools.config.log_facts import LogFacts

__all__ = ["RetentionConfig", "RetentionSchedule"]

_AGE_DIVISOR: Final = 10
"""History is let get older than its bound, and longer, by a tenth: whole segments go, and not one by one."""
_AGE_CHECK_S_MAX: Final = 3600


@dataclass(frozen=True, slots=True)
class RetentionConfig:
    """Which history goes as whole segments without being asked, and when."""

    age_s: int = 0
    """History that is older goes; 0: none is too old."""
    size_bytes: int = 0
    """So many bytes of the newest segments stay, what lies before them goes; 0: however many."""
    room_bytes_min: int = 512 << 20
    """With less room on the disk what may go goes at once; 0: the disk is not looked at."""
    pause_s: int = 10
    """Between the end of one run and the begin of the next."""
    archive: str = ""
    """A directory or URL that what goes is put into first, as Parquet files; empty: it is gone."""

    @property
    def is_on(self) -> bool:
        """Whether there is anything to look for."""
        return bool(self.age_s or self.size_bytes or self.room_bytes_min)

    def arguments(self) -> list[str]:
        """Return the options of `ambermq log compact` that say the same."""
        age = [f"{self.age_s}s"] if self.age_s else []
        size = [f"{self.size_bytes}B"] if self.size_bytes else []
        kept = [part for text in age + size or ["all"] for part in ("--keep-history", text)]
        return ["--whole-segments", *kept, *(["--archive", self.archive] if self.archive else [])]


class RetentionSchedule:
    """The runs of one log, as they become due."""

    __slots__ = ("_config", "_ended_s", "_left", "_paused_until_s")

    def __init__(self, config: RetentionConfig, now_s: float) -> None:
        """`now_s` is any clock that never goes back, that of all other methods too."""
        self._config = config
        self._ended_s = now_s
        self._paused_until_s = now_s
        self._left = LogFacts(next_offset=-1)

    def reason(self, now_s: float, facts: LogFacts) -> str:
        """Return why a log is to be looked through now, empty where it is not."""
        if now_s < self._paused_until_s:
            return ""
        if self._is_full(facts):
            return "room"
        if self._is_long(facts):
            return "size"
        return "age" if self._is_old(now_s) else ""

    def ended(self, now_s: float, facts: LogFacts) -> None:
        """Hear that a run has ended, however it did, and what the log is like now."""
        self._ended_s = now_s
        self._paused_until_s = now_s + self._config.pause_s
        self._left = facts

    def _is_full(self, facts: LogFacts) -> bool:
        config = self._config
        has_grown = facts.next_offset > max(self._left.next_offset, 0)
        may_win = bool(config.age_s or config.size_bytes) or facts.has_horizon
        return facts.room_bytes < config.room_bytes_min and has_grown and may_win

    def _is_long(self, facts: LogFacts) -> bool:
        bound = self._config.size_bytes
        return bool(bound) and facts.history_bytes >= max(bound, self._left.history_bytes) * (1 + 1 / _AGE_DIVISOR)

    def _is_old(self, now_s: float) -> bool:
        check_s = min(self._config.age_s / _AGE_DIVISOR, _AGE_CHECK_S_MAX)
        return bool(self._config.age_s) and now_s - self._ended_s >= check_s
