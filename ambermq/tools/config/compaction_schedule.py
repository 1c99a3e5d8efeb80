"""When the broker compacts a log by itself: after some time, or when much of the log is garbage. Pure.

Rule 1. Garbage is an estimate: bytes of all segments less those of the messages on queues. What history is kept for
counts as garbage too, so what was garbage after one compaction must have grown before it asks for the next. Where
messages would take more than the whole log they are compressed: those are counted as they lay in it then.
Rule 2. Between two there is a pause, whatever asks for them.
"""

from dataclasses import dataclass

from ambermq.protocol.amqp10.limits import bounded
from ambermq.tools.config.log_facts import LogFacts

__all__ = ["CompactionConfig", "Schedule"]


@dataclass(frozen=True, slots=True)
class CompactionConfig:
    """When a virtual host is compacted without being asked, and how much history stays."""

    interval_s: int = 0
    """Each time so long has passed since the start or the last one; 0: not for that."""
    garbage_percent: int = bounded(0, most=100)
    """When so much of the log is neither live nor was left by the last one; 0: not for that."""
    garbage_bytes_min: int = 256 << 20
    """Less garbage than that asks for none."""
    keep_history_s: int = 7 * 24 * 3600
    """History that is younger stays; 0 keeps none."""
    keep_history_bytes: int = 0
    """And of that no more than the newest so many bytes of segments; 0: however many."""
    pause_s: int = 60
    """Between the end of one and the begin of the next."""
    check_s: int = 10
    """How often the broker looks at this and at what [retention] asks for; at a disk that fills up more often."""
    spark: bool = True
    """Spark runs the tasks; false: one process of the broker's own."""
    compress: bool = False
    """What is rewritten is compressed, and so is what lives in segments that never were."""
    archive: str = ""
    """A directory or URL that what goes is put into first, as Parquet files; empty: it is gone."""

    @property
    def is_on(self) -> bool:
        """Whether there is anything to look for."""
        return bool(self.interval_s or self.garbage_percent)

    def arguments(self) -> list[str]:
        """Return the options of `ambermq log compact` that say the same."""
        kept = [f"{self.keep_history_s}s"] + ([f"{self.keep_history_bytes}B"] if self.keep_history_bytes else [])
        options = [part for text in kept for part in ("--keep-history", text)]
        aside = ["--archive", self.archive] if self.archive else []
        compress = ["--compress"] if self.compress else []
        return [*options, *compress, *aside, "--runner", "spark" if self.spark else "local"]


class Schedule:
    """The compactions of one log, as they become due."""

    __slots__ = ("_compressed_bytes", "_config", "_ended_s", "_left_bytes", "_paused_until_s")

    def __init__(self, config: CompactionConfig, now_s: float) -> None:
        """`now_s` is any clock that never goes back, that of all other methods too."""
        self._config = config
        self._ended_s = now_s
        self._paused_until_s = now_s
        self._left_bytes = 0
        self._compressed_bytes = (0, 0)
        """Of messages that are compressed, and of the log that they lay in."""

    def reason(self, now_s: float, facts: LogFacts) -> str:
        """Return why a log is to be compacted now, empty where it is not."""
        config = self._config
        if now_s < self._paused_until_s:
            return ""
        if config.interval_s and now_s - self._ended_s >= config.interval_s:
            return "interval"
        garbage_bytes = self._garbage_bytes(facts)
        grown_bytes = garbage_bytes - self._left_bytes
        is_much = config.garbage_percent and 100 * garbage_bytes >= config.garbage_percent * max(facts.log_bytes, 1)
        return "garbage" if is_much and grown_bytes >= config.garbage_bytes_min else ""

    def ended(self, now_s: float, facts: LogFacts) -> None:
        """Hear that one has ended, however it did, and what the log is like now."""
        self._ended_s = now_s
        self._paused_until_s = now_s + self._config.pause_s
        self._compressed_bytes = (0, 0)
        self._left_bytes = self._garbage_bytes(facts)

    def _garbage_bytes(self, facts: LogFacts) -> int:
        if facts.live_bytes > facts.log_bytes and not any(self._compressed_bytes):
            self._compressed_bytes = (facts.live_bytes, facts.log_bytes)
        plain_bytes, lying_bytes = self._compressed_bytes
        compressed_bytes = min(facts.live_bytes, plain_bytes)
        live_bytes = facts.live_bytes - compressed_bytes + compressed_bytes * lying_bytes // max(plain_bytes, 1)
        return max(0, facts.log_bytes - live_bytes)
