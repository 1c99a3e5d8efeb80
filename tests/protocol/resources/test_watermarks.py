"""The watermarks: a resource is low from one mark to the other, and readings between them change nothing."""

from dataclasses import replace
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ambermq.protocol.resources.resource import Resource, names_of
from ambermq.protocol.resources.watermarks import (
    Watermarks,
    descriptor_marks,
    disk_marks,
    process_memory_marks,
)
from ambermq.protocol.server_limits import ServerLimits

_MIB: Final = 1 << 20
_GIB: Final = 1 << 30
_DEFAULTS: Final = ServerLimits()
_NUMBERS: Final = st.integers(min_value=0, max_value=100)


@pytest.mark.parametrize(
    ("marks", "reading", "was_low", "expected"),
    [
        (Watermarks(10, 15), 10, False, False),
        (Watermarks(10, 15), 9, False, True),
        (Watermarks(10, 15), 14, True, True),
        (Watermarks(10, 15), 15, True, False),
        (Watermarks(80, 70, is_usage=True), 79, False, False),
        (Watermarks(80, 70, is_usage=True), 80, False, True),
        (Watermarks(80, 70, is_usage=True), 70, True, True),
        (Watermarks(80, 70, is_usage=True), 69, True, False),
        (Watermarks(0, 0), 0, False, False),
    ],
)
def test_each_mark_counts_in_one_state(marks: Watermarks, reading: int, *, was_low: bool, expected: bool) -> None:
    """Below the first mark of what is free, up to the second one; from the first mark of what is used, down to it."""
    assert marks.is_low(reading, was_low=was_low) is expected


@given(low=_NUMBERS, more=_NUMBERS, readings=st.lists(_NUMBERS))
def test_a_change_needs_the_whole_way_between_the_marks(low: int, more: int, readings: list[int]) -> None:
    """Every begin has a reading below the low mark, every end one at the other mark, and usage mirrors that."""
    free, used = Watermarks(low, low + more), Watermarks(-low, -low - more, is_usage=True)
    is_low = False
    for reading in readings:
        was_low, is_low = is_low, free.is_low(reading, was_low=is_low)
        if is_low is not was_low:
            assert reading < low if is_low else reading >= low + more
        # What is used is -reading; the marks are met from the other side, and then count themselves.
        if reading not in (low, low + more):
            assert used.is_low(-reading, was_low=was_low) is is_low


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (disk_marks(_DEFAULTS, 100 * _GIB), Watermarks(64 * _MIB, 80 * _MIB)),
        (disk_marks(_DEFAULTS, 256 * _MIB), Watermarks(16 * _MIB, 20 * _MIB)),
        (disk_marks(replace(_DEFAULTS, room_low_bytes=100), _GIB), Watermarks(100, 125)),
        (disk_marks(replace(_DEFAULTS, room_low_bytes=100, room_resume_bytes=300), _GIB), Watermarks(100, 300)),
        (disk_marks(replace(_DEFAULTS, room_low_bytes=100, room_resume_bytes=50), _GIB), Watermarks(100, 100)),
        (disk_marks(replace(_DEFAULTS, room_low_bytes=0), _GIB), Watermarks(0, 0)),
        (process_memory_marks(_DEFAULTS, 4000), Watermarks(3000, 2700, is_usage=True)),
        (
            process_memory_marks(replace(_DEFAULTS, process_memory_high_bytes=100, process_memory_low_bytes=500), 4000),
            Watermarks(100, 100, is_usage=True),
        ),
        (descriptor_marks(_DEFAULTS, 1024), Watermarks(12, 15)),
        (descriptor_marks(_DEFAULTS, 64), Watermarks(4, 5)),
        (descriptor_marks(replace(_DEFAULTS, descriptors_free_low=40), 64), Watermarks(40, 50)),
        (
            descriptor_marks(replace(_DEFAULTS, descriptors_free_low=40, descriptors_free_resume=45), 64),
            Watermarks(40, 45),
        ),
    ],
)
def test_the_marks_come_from_the_configuration(found: Watermarks, expected: Watermarks) -> None:
    """A default depends on the machine; a second mark on the wrong side counts as the first one."""
    assert found == expected


def test_resources_are_named_by_importance() -> None:
    """A peer knows one memory of the broker."""
    assert names_of({Resource.DESCRIPTORS, Resource.DISK}) == ["disk", "descriptors"]
    assert [one.reason for one in Resource] == ["disk", "memory", "memory", "descriptors"]
