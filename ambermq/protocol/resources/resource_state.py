"""Whether one resource is low, by its readings. The begin and the end of the state are log lines.

Rule 1. `producers held back` is a warning with the reason, the reading and both marks.
Rule 2. `producers continue` has the same, and for how many seconds producers were held back.
"""

from typing import Final, final

import structlog

from ambermq.protocol.resources.resource import Resource
from ambermq.protocol.resources.watermarks import Watermarks

__all__ = ["ResourceState"]

_MS_PER_S: Final = 1000


@final
class ResourceState:
    """The state of one resource."""

    __slots__ = ("_names", "_since_ms", "is_low", "marks", "resource")

    def __init__(self, resource: Resource, marks: Watermarks, names: tuple[str, str, str]) -> None:
        """Begin as not low. `names` are those of the reading and of both marks in log lines."""
        self.resource = resource
        self.marks = marks
        """The marks; a reload changes them."""
        self.is_low = False
        """Whether the resource is low."""
        self._names = names
        self._since_ms = 0

    def read(self, reading: int | None, now_ms: int, **values: object) -> bool:
        """Apply a reading, None if there is none; return whether the state has changed. `values` are for the log."""
        is_low = reading is not None and self.marks.is_low(reading, was_low=self.is_low)
        if is_low is self.is_low:
            return False
        self.is_low = is_low
        figures = zip(self._names, (reading, self.marks.begin, self.marks.end), strict=True)
        line: dict[str, object] = {"reason": self.resource.value, **values, **dict(figures)}
        if is_low:
            self._since_ms = now_ms
            structlog.get_logger().warning("producers held back", **line)
        else:
            seconds = round((now_ms - self._since_ms) / _MS_PER_S, 3)
            structlog.get_logger().info("producers continue", **line, seconds=seconds)
        return True
