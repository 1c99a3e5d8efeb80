"""The watch of a disk: little space, and syncs that do not keep up."""

from typing import Final

from structlog.testing import capture_logs

from ambermq.protocol.resources.disk_watch import DiskWatch
from ambermq.protocol.resources.resource import Resource
from ambermq.protocol.server_limits import ServerLimits

_LIMITS: Final = ServerLimits(room_low_bytes=100)


class _Log:
    """A log whose figures are those of the test."""

    low_bytes = 0
    disk_bytes = 1 << 40
    is_congested = False
    unsynced_bytes = 7
    room = 1000

    def room_bytes(self) -> int:
        return self.room


class _Gateway:
    """A gateway that notes what it is told."""

    def __init__(self) -> None:
        self.told: list[tuple[str, bool]] = []

    def set_low(self, resource: Resource, *, is_low: bool) -> None:
        self.told.append((resource.value, is_low))

    def set_unsynced(self, *, is_unsynced: bool) -> None:
        self.told.append(("unsynced", is_unsynced))


def test_little_space_lasts_until_a_quarter_more_is_free() -> None:
    """The log reports by the first mark; begin and end name the virtual host."""
    log, gateway = _Log(), _Gateway()
    watch = DiskWatch(log, gateway, _LIMITS, vhost="v")
    assert (log.low_bytes, watch.resume_bytes) == (100, 125)
    with capture_logs() as lines:
        for number, log.room in enumerate((100, 99, 124, 125)):
            watch.poll(number * 1000)
    assert gateway.told == [("disk", True), ("disk", False)]
    marks = {"room_low_bytes": 100, "room_resume_bytes": 125, "reason": "disk", "vhost": "v"}
    assert lines == [
        {"event": "producers held back", "log_level": "warning", "room_bytes": 99, **marks},
        {"event": "producers continue", "log_level": "info", "room_bytes": 125, "seconds": 2.0, **marks},
    ]


def test_other_marks_hold_from_the_next_poll() -> None:
    """For the log, too."""
    log, gateway = _Log(), _Gateway()
    watch = DiskWatch(log, gateway, _LIMITS, vhost="v")
    watch.reconfigure(ServerLimits(room_low_bytes=2000))
    watch.poll(0)
    assert (log.low_bytes, watch.is_low) == (2000, True)


def test_syncs_that_are_late_twice_are_told() -> None:
    """A single congestion is a burst."""
    log, gateway = _Log(), _Gateway()
    watch = DiskWatch(log, gateway, _LIMITS, vhost="v")
    with capture_logs() as lines:
        for log.is_congested in (True, False, True, True, True, False):
            watch.poll(0)
    assert gateway.told == [("unsynced", True), ("unsynced", False)]
    assert [line["event"] for line in lines] == ["producers held back", "producers continue"]
