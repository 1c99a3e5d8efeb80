"""Whether a broker can take durable messages now, in one word and a reason.

    recovering | stopping | failed | fenced | stalled    503: a balancer sends no clients here
    room | memory | descriptors                          503: little of a resource is left
    degraded                                             200: it serves, and a person should look
    ready                                                200

Rule 1. The figures are those of the management type `org.ambermq.broker`: so a command and a probe say the same.
Rule 2. A reason has no name that a client chose.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple

__all__ = ["CHECKED", "FENCED", "READY", "RECOVERING", "STOPPING", "Readiness", "readiness", "worst"]


class Readiness(NamedTuple):
    """The state of a broker."""

    word: str
    reason: str = ""

    @property
    def is_ready(self) -> bool:
        """Whether the broker takes durable messages."""
        return self.word in _SERVING


READY: Final = Readiness("ready")
RECOVERING: Final = Readiness("recovering", "the log is being read")
STOPPING: Final = Readiness("stopping", "the broker ends")
FENCED: Final = Readiness("fenced", "the lock file of the data directory is not that of this process")
_SERVING: Final = ("ready", "degraded")


def _is_fenced(figures: Mapping[str, Any]) -> str:
    return FENCED.reason if figures.get("is_fenced") else ""


def _is_stalled(figures: Mapping[str, Any]) -> str:
    waited_us, limit_ms = figures.get("sync_wait_us") or 0, figures.get("sync_stalled_ms") or 0
    if not limit_ms or waited_us < limit_ms * 1000:
        return ""
    return f"a sync of the log has lasted {waited_us // 1000} ms (sync_stalled_ms)"


def _has_no_room(figures: Mapping[str, Any]) -> str:
    room_bytes, low_bytes = figures.get("room_bytes"), figures.get("room_low_bytes") or 0
    if figures.get("disk_is_full"):
        return "the disk is full"
    if room_bytes is None:
        return ""
    if room_bytes < low_bytes:
        return f"{room_bytes} bytes of room on the disk, expected {low_bytes} (room_low_bytes)"
    if figures.get("room_is_low"):
        resume_bytes = figures.get("room_resume_bytes") or 0
        return f"{room_bytes} bytes of room on the disk, expected {resume_bytes} (room_resume_bytes)"
    return ""


def _has_no_memory(figures: Mapping[str, Any]) -> str:
    if figures.get("memory_is_low"):
        held_bytes, bytes_max = figures.get("memory_bytes"), figures.get("memory_bytes_max")
        return f"peers hold {held_bytes} of {bytes_max} bytes (memory_bytes_max)"
    if not figures.get("process_memory_is_low"):
        return ""
    used_bytes, high_bytes = figures.get("process_memory_bytes"), figures.get("process_memory_high_bytes")
    return f"the process uses {used_bytes} bytes, low from {high_bytes} (process_memory_high_bytes)"


def _has_no_descriptors(figures: Mapping[str, Any]) -> str:
    if not figures.get("descriptors_are_low"):
        return ""
    free, low = figures.get("descriptors_free"), figures.get("descriptors_free_low")
    return f"{free} file descriptors are free, low below {low} (descriptors_free_low)"


def _counted(name: str, what: str) -> Callable[[Mapping[str, Any]], str]:
    def check(figures: Mapping[str, Any]) -> str:
        value = figures.get(name) or 0
        count = len(value) if isinstance(value, list) else int(value)
        return f"{count} {what}" if count else ""

    return check


def _is_blocked(figures: Mapping[str, Any]) -> str:
    return f"producers are held back: {figures['blocked']}" if figures.get("blocked") else ""


def _is_crowded(figures: Mapping[str, Any]) -> str:
    count, limit = figures.get("connections") or 0, figures.get("connections_max") or 0
    return f"{count} connections, at most {limit} (connections_max)" if limit and count >= limit else ""


_CHECKS: Final[tuple[tuple[str, Callable[[Mapping[str, Any]], str]], ...]] = (
    ("fenced", _is_fenced),
    ("stalled", _is_stalled),
    ("room", _has_no_room),
    ("memory", _has_no_memory),
    ("descriptors", _has_no_descriptors),
    ("degraded", _is_blocked),
    ("degraded", _counted("damaged_segments", "damaged segments of the log")),
    ("degraded", _counted("segments_without_index", "segments without an index")),
    ("degraded", _counted("snapshot_failures", "snapshots in a row failed")),
    ("degraded", _is_crowded),
)
"""The word for each check that finds something, the worst first."""

CHECKED: Final = (
    *("blocked", "connections", "connections_max", "damaged_segments", "descriptors_are_low", "descriptors_free"),
    *("descriptors_free_low", "disk_is_full", "is_fenced", "memory_bytes", "memory_bytes_max", "memory_is_low"),
    *("process_memory_bytes", "process_memory_high_bytes", "process_memory_is_low", "room_bytes", "room_is_low"),
    *("room_low_bytes", "room_resume_bytes", "segments_without_index", "snapshot_failures", "sync_stalled_ms"),
    "sync_wait_us",
)
"""The figures that the checks read."""


def readiness(figures: Mapping[str, Any]) -> Readiness:
    """Return the readiness that the figures of a virtual host show."""
    for word, check in _CHECKS:
        reason = check(figures)
        if reason:
            return Readiness(word, reason)
    return READY


def worst(found: Iterable[Readiness]) -> Readiness:
    """Return the worst of several."""
    order = {word: rank for rank, (word, _) in reversed(list(enumerate(_CHECKS)))}
    return min(found, key=lambda one: order.get(one.word, len(_CHECKS)), default=READY)
