"""The watch of the process: producers are held back between the marks, and nothing else happens."""

from typing import Final

import pytest
from structlog.testing import capture_logs

from ambermq.protocol.resources.process_usage import ProcessUsage
from ambermq.protocol.resources.resource import Resource
from ambermq.protocol.resources.resource_watch import ResourceWatch
from ambermq.protocol.server_limits import ServerLimits

_LIMITS: Final = ServerLimits(process_memory_high_bytes=100, descriptors_free_low=10)


class _Server:
    """A server that notes what it is told."""

    def __init__(self) -> None:
        self.told: list[tuple[Resource, bool]] = []
        self.releases = 0

    def set_low(self, resource: Resource, *, is_low: bool) -> None:
        self.told.append((resource, is_low))

    def release_memory(self) -> None:
        self.releases += 1


class _Rig:
    """A watch whose readings are those of the test."""

    def __init__(self) -> None:
        self.server = _Server()
        self.usage = ProcessUsage(50, 20)
        self.watch = ResourceWatch(self.server, _LIMITS, memory_max=1000, descriptors_max=100, usage=lambda: self.usage)

    def poll(self, memory_bytes: int | None, descriptors: int | None, now_ms: int = 0) -> list[tuple[Resource, bool]]:
        """Poll once, and return what the server was told."""
        self.usage = ProcessUsage(memory_bytes, descriptors)
        self.server.told = []
        self.watch.poll(now_ms)
        return self.server.told


@pytest.fixture
def rig() -> _Rig:
    """A watch that has read nothing."""
    return _Rig()


def test_memory_is_low_from_one_mark_to_the_other(rig: _Rig) -> None:
    """From 100 bytes on, until less than 90 are used; free memory is released meanwhile."""
    assert rig.poll(99, 20) == []
    assert rig.poll(100, 20) == [(Resource.PROCESS_MEMORY, True)]
    assert rig.poll(95, 20) == []
    assert rig.server.releases == 2
    assert rig.poll(89, 20) == [(Resource.PROCESS_MEMORY, False)]
    assert rig.poll(99, 20) == []
    assert rig.server.releases == 2


def test_descriptors_are_low_from_one_mark_to_the_other(rig: _Rig) -> None:
    """With less than 10 free, until 12 are free; more open ones than the limit leave none."""
    assert rig.poll(1, 90) == []
    assert rig.poll(1, 91) == [(Resource.DESCRIPTORS, True)]
    assert rig.poll(1, 101) == []
    assert rig.watch.descriptors_free == 0
    assert rig.poll(1, 89) == []
    assert rig.poll(1, 88) == [(Resource.DESCRIPTORS, False)]
    assert rig.server.releases == 0


def test_begin_and_end_are_log_lines(rig: _Rig) -> None:
    """With the reading, both marks, and how long it was."""
    with capture_logs() as lines:
        for now_ms, memory_bytes in ((1000, 150), (2000, 160), (4500, 10)):
            rig.poll(memory_bytes, 20, now_ms)
    marks = {"process_memory_high_bytes": 100, "process_memory_low_bytes": 90, "reason": "process-memory"}
    begin = {"event": "producers held back", "log_level": "warning", "process_memory_bytes": 150}
    end = {"event": "producers continue", "log_level": "info", "process_memory_bytes": 10, "seconds": 3.5}
    assert lines == [{**begin, **marks}, {**end, **marks}]


def test_a_reading_that_fails_ends_the_state(rig: _Rig) -> None:
    """A broker that cannot read its own figures takes messages."""
    assert len(rig.poll(100, 99)) == 2
    assert rig.poll(None, None) == [(Resource.PROCESS_MEMORY, False), (Resource.DESCRIPTORS, False)]
    assert rig.watch.descriptors_free is None


def test_other_marks_hold_from_the_next_poll(rig: _Rig) -> None:
    """A reload raises a mark, and producers continue."""
    assert len(rig.poll(500, 60)) == 1
    rig.watch.reconfigure(ServerLimits(descriptors_free_low=50))
    assert rig.poll(500, 60) == [(Resource.PROCESS_MEMORY, False), (Resource.DESCRIPTORS, True)]
