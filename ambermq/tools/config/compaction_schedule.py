"""The schedule of automatic compaction: after an interval, or at a share of garbage in the log. Pure.

Rule 1. Garbage is an estimate: the bytes of all segments less those of the messages on queues. It includes the history
that is kept, so a compaction is due only if garbage has grown since the last one.
Rule 2. If the messages are larger than the whole log, they are compressed: they count with their size in the log then.
Rule 3. There is a pause between two compactions, for every reason.
"""

from dataclasses import dataclass

from ambermq.protocol.amqp10.limits import bounded
from ambermq.tools.config.log_facts import LogFacts

__all__ = ["CompactionConfig", "Schedule"]


@dataclass(frozen=True, slots=True)
class CompactionConfig:
    """The keys of [compaction]: when the broker compacts by itself, and how much history it keeps."""

    interval_s: int = 0
    """Seconds since the start or the last compaction, after which the next is due; 0: never for this reason."""
    garbage_percent: int = bounded(0, most=100)
    """Share of garbage in the log at which a compaction is due; 0: never for this reason."""
    garbage_bytes_min: int = 256 << 20
    """Minimum growth of garbage since the last compaction."""
    keep_history_s: int = 7 * 24 * 3600
    """History younger than this stays; 0 keeps none."""
    keep_history_bytes: int = 0
    """The least bytes of the newest history to keep; older history is removed, whatever its age. 0: no limit."""
    pause_s: int = 60
    """Between the end of a compaction and the start of the next."""
    check_s: int = 10
    """Between two checks of the schedules of [compaction] and [retention]; shorter while the disk fills up."""
    spark: bool = True
    """Whether Spark runs the tasks; false: one process runs them."""
    compress: bool = False
    """Whether a compaction compresses rewritten segments, and live messages of uncompressed segments."""
    archive: str = ""
    """Directory or URL of the Parquet files for removed events; empty: no archive."""

    @property
    def is_on(self) -> bool:
        """Whether automatic compaction is on."""
        return bool(self.interval_s or self.garbage_percent)

    def arguments(self) -> list[str]:
        """Return these settings as options of `ambermq log compact`."""
        kept = [f"{self.keep_history_s}s"] + ([f"{self.keep_history_bytes}B"] if self.keep_history_bytes else [])
        options = [part for text in kept for part in ("--keep-history", text)]
        archive = ["--archive", self.archive] if self.archive else []
        compress = ["--compress"] if self.compress else []
        return [*options, *compress, *archive, "--runner", "spark" if self.spark else "local"]


class Schedule:
    """The schedule of one log."""

    __slots__ = ("_compressed_bytes", "_config", "_ended_s", "_left_bytes", "_paused_until_s")

    def __init__(self, config: CompactionConfig, now_s: float) -> None:
        """`now_s` is the time of a monotonic clock, as in all other methods."""
        self._config = config
        self._ended_s = now_s
        self._paused_until_s = now_s
        self._left_bytes = 0
        self._compressed_bytes = (0, 0)
        """Bytes of compressed messages in plain form, and of the log that holds them."""

    def reconfigure(self, config: CompactionConfig) -> None:
        """Use another configuration; a pause that has begun goes on."""
        self._config = config

    def reason(self, now_s: float, facts: LogFacts) -> str:
        """Return the reason for a compaction now; empty if none is due."""
        config = self._config
        if now_s < self._paused_until_s:
            return ""
        if config.interval_s and now_s - self._ended_s >= config.interval_s:
            return "interval"
        garbage_bytes = self._garbage_bytes(facts)
        grown_bytes = garbage_bytes - self._left_bytes
        is_above = config.garbage_percent and 100 * garbage_bytes >= config.garbage_percent * max(facts.log_bytes, 1)
        return "garbage" if is_above and grown_bytes >= config.garbage_bytes_min else ""

    def ended(self, now_s: float, facts: LogFacts) -> None:
        """Record the end of a compaction, successful or not, and the state of the log."""
        self._ended_s = now_s
        self._paused_until_s = now_s + self._config.pause_s
        self._compressed_bytes = (0, 0)
        self._left_bytes = self._garbage_bytes(facts)

    def _garbage_bytes(self, facts: LogFacts) -> int:
        if facts.live_bytes > facts.log_bytes and not any(self._compressed_bytes):
            self._compressed_bytes = (facts.live_bytes, facts.log_bytes)
        plain_bytes, stored_bytes = self._compressed_bytes
        compressed_bytes = min(facts.live_bytes, plain_bytes)
        live_bytes = facts.live_bytes - compressed_bytes + compressed_bytes * stored_bytes // max(plain_bytes, 1)
        return max(0, facts.log_bytes - live_bytes)
