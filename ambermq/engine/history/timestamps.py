"""Times of the log, microseconds since 1970 in UTC, as people write them."""

from datetime import UTC, datetime, timedelta
from typing import Final

__all__ = ["iso_time"]

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def iso_time(time_us: int) -> str:
    """Return microseconds since the epoch as ISO 8601 in UTC, whatever the machine's own zone is."""
    moment = _EPOCH + timedelta(microseconds=time_us)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
