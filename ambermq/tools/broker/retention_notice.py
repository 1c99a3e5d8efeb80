"""The notice of retention by free space: the first start of an older directory warns, and deletes nothing for a while.

Rule 1. A file in the data directory has the time of the first start under this retention. Its absence beside a log says
        that the directory is older.
Rule 2. A new directory has no history that a user could miss, so it gets the file without a warning.
"""

import time
from contextlib import suppress
from pathlib import Path
from typing import Final

import structlog

from ambermq.tools.config.retention_schedule import RetentionConfig

__all__ = ["grace_seconds", "notice_path"]

_GRACE_SECONDS: Final = 600.0


def notice_path(directory: str) -> Path:
    """Return the path of the file with the time of the first start under retention by free space."""
    return Path(directory) / "RETENTION"


def grace_seconds(directory: str, retention: RetentionConfig, *, had_log: bool) -> float:
    """Return how long retention by free space deletes nothing; warn at the first start of an older directory."""
    if not (retention.by_room and retention.room_bytes_min):
        return 0.0
    first_s = _first_start_s(directory)
    now_s = time.time()
    if first_s is not None:
        return min(max(first_s + _GRACE_SECONDS - now_s, 0.0), _GRACE_SECONDS)
    if had_log:
        structlog.get_logger().warning(
            "history may be deleted",
            data=directory,
            when=f"less than {retention.room_bytes_min:,} bytes are free, from {_GRACE_SECONDS:.0f} s after this start",
            what="the oldest whole segments without live messages; no snapshot that a person requested",
            forbid="[retention] by_room = false",
        )
    with suppress(OSError):
        # Without the file the next start warns again.
        notice_path(directory).write_text(f"{now_s if had_log else 0.0}\n")
    return _GRACE_SECONDS if had_log else 0.0


def _first_start_s(directory: str) -> float | None:
    try:
        return float(notice_path(directory).read_text())
    except (OSError, ValueError):
        return None
