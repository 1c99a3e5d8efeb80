"""The limits of a log. Everything has one, and each has its name here."""

from dataclasses import dataclass, fields

from ambermq.log.errors import LogError
from ambermq.log.format.batch import BATCH_ALIGNMENT, BATCH_HEADER_BYTES

__all__ = ["BATCH_OVERHEAD_BYTES", "LogConfig"]

_KIB = 1024
_MIB = 1024 * _KIB
_PAGE_BYTES = 4096
BATCH_OVERHEAD_BYTES = BATCH_HEADER_BYTES + BATCH_ALIGNMENT
"""What a batch has beside its records, at most."""


@dataclass(frozen=True, slots=True)
class LogConfig:
    """Sizes in bytes, times in milliseconds. Raises LogError with one clear message where a value cannot work."""

    segment_bytes_max: int = 64 * _MIB
    """A segment is sealed before a batch would take it past this size; a batch larger than it gets one to itself."""

    segment_bytes_min: int = 4 * _MIB
    """The first segment of a young log; each next one is twice as large, up to `segment_bytes_max`."""

    segment_age_ms_max: int = 3_600_000
    """A segment with records is sealed at the first write after this age."""

    batch_bytes_target: int = 1 * _MIB
    """A batch is closed at the end of the command that reaches it."""

    batch_bytes_max: int = 4 * _MIB
    """No batch is larger; readers refuse a larger claim before they use it."""

    hot_large_bytes_max: int = 24 * _MIB
    """Recently written bodies that are views of read buffers, kept until they are delivered."""

    hot_bytes_max: int = 8 * _MIB
    """Recently written bodies kept in memory, their overhead included."""

    cold_bytes_max: int = 16 * _MIB
    """Batches read back from segments and kept in memory, decompressed."""

    cached_bytes_max: int = 1 * _MIB
    """Page cache left to what was synced last; what is older leaves it, so that its pages go round."""

    unsynced_bytes_max: int = 8 * _MIB
    """Written and not yet synced; the reading of transports stops there, else single syncs grow to 700 ms."""

    ballast_bytes: int = 128 * _MIB
    """Disk space held back from publishing for settlements, snapshots and recovery; 0 holds none."""

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
        """The largest record that fits in any case: behind others of its command, which are less than the target."""
        return self.batch_bytes_max - self.batch_bytes_target - BATCH_OVERHEAD_BYTES

    def _require(self, name: str, *, at_least: int = 0, at_most: int | None = None, reason: str = "") -> None:
        value: int = getattr(self, name)
        because = f" ({reason})" if reason else ""
        if value < at_least:
            raise LogError(f"{name} must be at least {at_least}{because}, not {value}")
        if at_most is not None and value > at_most:
            raise LogError(f"{name} must be at most {at_most}{because}, not {value}")
