"""Times of the log as text: microseconds since 1970 become ISO 8601 in UTC."""

from datetime import UTC, datetime, timedelta
from typing import Final

__all__ = ["iso_time"]

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def iso_time(time_us: int) -> str:
    """Return microseconds since the epoch as ISO 8601 in UTC, in any time zone of the machine."""
    moment = _EPOCH + timedelta(microseconds=time_us)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
