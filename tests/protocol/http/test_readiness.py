"""What figures make of readiness."""

from typing import Any

import pytest

from ambermq.protocol.http.readiness import READY, Readiness, readiness, worst
from ambermq.protocol.http.routes import ready

_MIB = 1 << 20


@pytest.mark.parametrize(
    ("figures", "word"),
    [
        ({}, "ready"),
        ({"room_bytes": _MIB, "room_low_bytes": _MIB}, "ready"),
        ({"room_bytes": _MIB - 1, "room_low_bytes": _MIB}, "room"),
        ({"disk_is_full": True}, "room"),
        ({"room_bytes": _MIB, "room_low_bytes": _MIB, "room_is_low": True}, "room"),
        ({"memory_is_low": True}, "memory"),
        ({"process_memory_is_low": True}, "memory"),
        ({"descriptors_are_low": True}, "descriptors"),
        ({"sync_wait_us": 10_000_000, "sync_stalled_ms": 10_000}, "stalled"),
        ({"sync_wait_us": 10_000_000, "sync_stalled_ms": 0}, "ready"),
        ({"blocked": "unsynced"}, "degraded"),
        ({"damaged_segments": ["segment 1"]}, "degraded"),
        ({"segments_without_index": 1}, "degraded"),
        ({"snapshot_failures": 1}, "degraded"),
        ({"connections": 10, "connections_max": 10}, "degraded"),
        ({"connections": 10, "connections_max": 10, "memory_is_low": True}, "memory"),
    ],
)
def test_the_worst_figure_gives_the_word(figures: dict[str, Any], word: str) -> None:
    """A degraded broker takes messages: the status is that of a ready one."""
    found = readiness(figures)
    assert found.word == word
    assert bool(found.reason) is (word != "ready")
    assert ready(found).status == (200 if word in {"ready", "degraded"} else 503)
    assert ready(found).text.startswith(word)


def test_the_worst_virtual_host_counts() -> None:
    """And a broker without any is ready."""
    degraded, room = Readiness("degraded", "a"), Readiness("room", "b")
    assert worst([READY, degraded, room, READY]) == room
    assert worst([READY, degraded]) == degraded
    assert worst([]) == READY
