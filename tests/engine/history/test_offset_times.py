"""When an offset was logged, by notes of each second and by the segments before them."""

from ambermq.engine.history.offset_times import OffsetTimes
from ambermq.log.format.time_range import TimeRange
from ambermq.log.manifest.manifest import SealedSegment

_NOW = 10_000


def test_an_offset_has_the_time_of_the_first_note_above_it() -> None:
    """What was logged since the last note has the time of the question."""
    times = OffsetTimes()
    for end, time_us in ((10, 100), (10, 200), (20, 300), (30, 400)):
        times.note(end, time_us)
    assert [times.time_of(offset, (), _NOW) for offset in (10, 19, 20, 29, 30)] == [300, 300, 400, 400, _NOW]


def test_an_offset_before_the_start_has_the_time_of_its_segment() -> None:
    """None where the segment has none, or is gone."""
    times = OffsetTimes()
    times.note(30, 100)
    sealed = (SealedSegment(1, 10, 20, 0, TimeRange(5, 9)), SealedSegment(2, 20, 30, 0))
    assert [times.time_of(offset, sealed, _NOW) for offset in (9, 10, 19, 20)] == [None, 5, 5, None]


def test_the_number_of_notes_is_bounded() -> None:
    """The first and the newest stay exact; between them a time is late, and never early."""
    times = OffsetTimes(notes_max=16)
    for second in range(1000):
        times.note(10 * second + 1, second)
    assert len(times._ends) < 16
    assert times.time_of(9985, (), _NOW) == 999
    for offset in range(1, 9000, 97):
        found = times.time_of(offset, (), _NOW)
        assert found is not None
        assert found >= (offset + 8) // 10
