"""The configuration of a log: every limit has a name, a default value and a check."""

from dataclasses import dataclass, fields

from ambermq.log.errors import LogError
from ambermq.log.format.batch import BATCH_ALIGNMENT, BATCH_HEADER_BYTES

__all__ = ["BATCH_OVERHEAD_BYTES", "LogConfig"]

_KIB = 1024
_MIB = 1024 * _KIB
_PAGE_BYTES = 4096
BATCH_OVERHEAD_BYTES = BATCH_HEADER_BYTES + BATCH_ALIGNMENT
"""The most bytes that a batch adds to its records: header and padding."""


@dataclass(frozen=True, slots=True)
class LogConfig:
    """The limits of one log: sizes in bytes, times in milliseconds. Raises LogError if a value cannot work."""

    segment_bytes_max: int = 64 * _MIB
    """A segment is sealed before a batch would make it larger than this. A larger batch gets its own segment."""

    segment_bytes_min: int = 4 * _MIB
    """The size of the first segment of a new log. Each next one is twice as large, up to `segment_bytes_max`."""

    segment_age_ms_max: int = 3_600_000
    """A segment that has records is sealed at the first write after this age."""

    batch_bytes_target: int = 1 * _MIB
    """A batch is closed at the end of the command whose records reach this size."""

    batch_bytes_max: int = 4 * _MIB
    """The largest batch. A reader refuses a header that claims more, before it allocates memory for it."""

    hot_large_bytes_max: int = 24 * _MIB
    """Memory for recently written bodies that are views of read buffers, until they are delivered."""

    hot_bytes_max: int = 32 * _MIB
    """Memory for bodies written in the last seconds, their overhead included."""

    cold_bytes_max: int = 16 * _MIB
    """Memory for batches that were read from segments, decompressed."""

    cached_bytes_max: int = 1 * _MIB
    """Page cache left to the bytes synced last. Older bytes leave the cache, so that the kernel reuses their pages."""

    unsynced_bytes_max: int = 8 * _MIB
    """The most bytes written and not yet synced. At this limit the server stops reading its sockets.

    Without the limit a single sync grows to 700 ms.
    """

    ballast_bytes: int = 128 * _MIB
    """Disk space reserved for settlements, snapshots and recovery; publishing cannot use it. 0 reserves none."""

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if type(value) is not int or value < 0:
                raise LogError(f"{field.name} must be a whole number, at least 0, not {value!r}")
        self._require("segment_age_ms_max", at_least=1)
        self._require("batch_bytes_target", at_least=_PAGE_BYTES)
        self._require("batch_bytes_max", at_least=2 * self.batch_bytes_target, reason="twice batch_bytes_target")
        self._require("batch_bytes_max", at_most=1 << 30)
        self._require("segment_bytes_min", at_least=2 * _PAGE_BYTES)
        self._require("segment_bytes_max", at_least=self.segment_bytes_min, reason="segment_bytes_min")
        self._require("segment_bytes_max", at_most=1 << 40)
        self._require("unsynced_bytes_max", at_least=_PAGE_BYTES)

    @property
    def record_bytes_max(self) -> int:
        """The largest record that always fits in a batch, after the earlier records of its command.

        Those records have fewer bytes than `batch_bytes_target`.
        """
        return self.batch_bytes_max - self.batch_bytes_target - BATCH_OVERHEAD_BYTES

    def _require(self, name: str, *, at_least: int = 0, at_most: int | None = None, reason: str = "") -> None:
        value: int = getattr(self, name)
        reason_text = f" ({reason})" if reason else ""
        if value < at_least:
            raise LogError(f"{name} must be at least {at_least}{reason_text}, not {value}")
        if at_most is not None and value > at_most:
            raise LogError(f"{name} must be at most {at_most}{reason_text}, not {value}")
