"""The policy of a compaction: which base, what is kept, and which segments are worth rewriting."""

from array import array
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ambermq.engine.compaction.plan import History, base_for, dead_of, end_for, groups_of, plan_compaction
from ambermq.log.compaction.rewrite_tasks import SegmentCount
from ambermq.log.manifest.manifest import Horizon, Manifest, SealedSegment, Snapshot, create

MIB = 1 << 20


def snapshot(end: int, time_us: int) -> Snapshot:
    return Snapshot(end, f"at {end}", end, time_us, time_us, 100, is_automatic=True)


def manifest(*snapshots: Snapshot, sizes: tuple[int, ...] = (), horizon: int = 0) -> Manifest:
    """Segments of ten offsets each, of these sizes."""
    sealed = tuple(SealedSegment(number + 1, 10 * number, 10 * number + 10, size) for number, size in enumerate(sizes))
    begins = Horizon(horizon, 0) if horizon else None
    return replace(create(bytes(16)), snapshots=snapshots, sealed=sealed, horizon=begins)


THREE = (snapshot(10, 100), snapshot(20, 200), snapshot(30, 300))


@pytest.mark.parametrize(
    ("age_us", "end"), [(0, 20), (99, 20), (100, 20), (101, 10), (200, 10), (201, None), (1000, None)]
)
def test_the_base_is_the_newest_that_is_old_enough_and_not_the_newest_of_all(age_us: int, end: int | None) -> None:
    """What is younger than the history to keep stays; two snapshots stay in any case."""
    found = base_for(manifest(*THREE), History(age_us=age_us), now_us=300)
    assert (found and found.end) == end


@pytest.mark.parametrize(("size", "end"), [(0, 20), (100, 20), (150, 20), (151, 10), (250, 10), (251, None)])
def test_bytes_are_counted_behind_the_base(size: int, end: int | None) -> None:
    """Whole segments at or after it, and what is not sealed yet."""
    found = base_for(manifest(*THREE, sizes=(100, 100, 100)), History(size=size), now_us=0, active_bytes=50)
    assert (found and found.end) == end


def test_of_two_bounds_the_tighter_counts() -> None:
    """What is over either of them goes."""
    log = manifest(*THREE, sizes=(100, 100, 100))
    for history in (History(age_us=1000, size=100), History(age_us=0, size=1 << 40)):
        found = base_for(log, history, now_us=300)
        assert found is not None
        assert found.end == 20


def test_a_horizon_never_moves_back_or_stays() -> None:
    """A base at or before it is none."""
    assert base_for(manifest(*THREE, horizon=20), History(age_us=0), now_us=300) is None
    assert base_for(manifest(), History(age_us=0), now_us=300) is None


@pytest.mark.parametrize(
    ("young_offset", "size", "end"),
    [(0, None, None), (9, None, None), (10, None, 10), (25, None, 20), (99, None, 20), (None, 150, 10), (25, 0, 20)],
)
def test_a_base_is_made_where_a_segment_begins(young_offset: int | None, size: int | None, end: int | None) -> None:
    """The last such place before what is too young, or with enough bytes behind it."""
    log = manifest(sizes=(100, 100, 100))
    assert end_for(log, History(size=size), young_offset=young_offset) == end
    assert end_for(replace(log, horizon=Horizon(20, 0)), History(size=size), young_offset=young_offset) is None


@given(st.lists(st.lists(st.integers(0, 50)), max_size=4), st.integers(0, 50))
def test_kept_is_what_lives_in_any_snapshot_below_the_horizon(lists: list[list[int]], end: int) -> None:
    """Each offset once, in order."""
    plan = plan_compaction(manifest(sizes=(9,) * 6), Horizon(end, 0), [array("Q", sorted(set(one))) for one in lists])
    assert plan.kept.tolist() == sorted({offset for one in lists for offset in one if offset < end})
    assert all(one.next_offset <= end for one in plan.segments)
    for one in plan.segments:
        assert plan.kept_of(one).tolist() == [k for k in plan.kept if one.base_offset <= k < one.next_offset]


def chosen(*rows: tuple[int, int], limit: int = 4 * MIB) -> tuple[list[list[int]], list[int]]:
    """Segments of (size, kept bytes): the file ids of each group, and those that stay."""
    log = manifest(sizes=tuple(size for size, _ in rows))
    plan = plan_compaction(log, Horizon(1000, 0), [])
    counts = {
        one.file_id: SegmentCount(one.file_id, 100, 100 if kept >= size - 5000 else int(kept > 0), kept)
        for one, (size, kept) in zip(log.sealed, rows, strict=True)
    }
    choice = groups_of(plan, counts, segment_bytes_max=limit)
    return [[one.file_id for one in group.segments] for group in choice.groups], [
        one.file_id for one in choice.untouched
    ]


def test_what_has_little_garbage_stays() -> None:
    """A full segment below the threshold is left alone, and parts its neighbours."""
    assert chosen((4 * MIB, MIB), (4 * MIB, 4 * MIB - 9), (4 * MIB, 0)) == ([[1], [3]], [2])


def test_neighbours_become_one_up_to_the_segment_size() -> None:
    """By the bytes that are kept of them."""
    rows = [(4 * MIB, 3 * MIB // 2)] * 5
    assert chosen(*rows) == ([[1, 2], [3, 4], [5]], [])


def compressing(*rows: tuple[int, int, int | None], compresses: bool) -> list[tuple[list[int], int, bool]]:
    """Segments of (size, plain bytes, bytes they take where compressed): each group, its bytes, what it becomes."""
    log = manifest(sizes=tuple(size for size, _, _ in rows))
    plan = plan_compaction(log, Horizon(1000, 0), [])
    counts = {}
    for one, (size, plain, stored) in zip(log.sealed, rows, strict=True):
        lying = plain if stored is None else stored
        kept_count = 100 if lying >= size - 5000 else int(plain > 0)
        count = SegmentCount(one.file_id, 100, kept_count, plain, b"", stored is not None, plain - lying)
        counts[one.file_id] = count
    choice = groups_of(plan, counts, segment_bytes_max=4 * MIB, compresses=compresses)
    return [([one.file_id for one in group.segments], group.kept_bytes, group.compresses) for group in choice.groups]


def test_what_was_never_compressed_is_where_that_is_asked_for() -> None:
    """Though all of it lives; what was compressed is left alone like any other, and nothing without being asked."""
    whole, packed = (4 * MIB, 4 * MIB - 9000, None), (4 * MIB, 20 * MIB, 4 * MIB - 9000)
    assert compressing(whole, packed, whole, compresses=True) == [
        ([1], 4 * MIB - 9000, True),
        ([3], 4 * MIB - 9000, True),
    ]
    assert compressing(whole, packed, whole, compresses=False) == []
    assert compressing((4 * MIB, 0, None), compresses=True) == [([1], 0, True)]
    assert compressing(packed, packed, compresses=True) == []


def test_what_was_compressed_stays_so_and_weighs_what_it_takes() -> None:
    """Its garbage is that of what lies there, groups fill up by it, and a group with any of it is compressed."""
    half = (4 * MIB, 9 * MIB, 2 * MIB)
    assert compressing(half, half, half, compresses=False) == [([1, 2], 4 * MIB, True), ([3], 2 * MIB, True)]
    assert compressing(half, (4 * MIB, MIB, None), compresses=False) == [([1, 2], 3 * MIB, True)]
    assert compressing((4 * MIB, MIB, None), compresses=False) == [([1], MIB, False)]


def test_small_neighbours_are_merged_though_they_hold_no_garbage() -> None:
    """One alone stays as it is: nothing would be won."""
    small = (MIB // 2, MIB // 2 - 4200)
    assert chosen(small, small, small) == ([[1, 2, 3]], [])
    assert chosen(small) == ([], [1])
    assert chosen((20_000, 0)) == ([[1]], [])
    assert chosen((4160, 0)) == ([], [1])


def dead(kept: list[int], *sizes: int) -> tuple[list[list[int]], list[int]]:
    """Which of these segments of ten offsets go together, and which stay, by what of them is kept."""
    plan = plan_compaction(manifest(sizes=sizes), Horizon(1000, 0), [array("Q", kept)])
    choice = dead_of(plan)
    assert sorted(one.file_id for one in choice.dropped) == sorted(
        one.file_id for group in choice.groups for one in group.segments
    )
    groups = [[one.file_id for one in group.segments] for group in choice.groups]
    return groups, sorted(one.file_id for one in choice.untouched)


def test_dead_segments_go_together_and_stop_at_a_live_one() -> None:
    """One live message keeps its segment, at whichever end of it."""
    assert dead([], MIB, MIB, MIB) == ([[1, 2, 3]], [])
    assert dead([10, 39], MIB, MIB, MIB, MIB, MIB) == ([[1], [3], [5]], [2, 4])
    assert dead([5, 15], MIB, MIB) == ([], [1, 2])


def test_what_stands_for_dead_segments_goes_along_with_others_only() -> None:
    """An empty segment alone is no gain; with a neighbour that goes it becomes one with it."""
    empty = 4096 + 64
    assert dead([], empty) == ([], [1])
    assert dead([15], empty, MIB, empty, empty) == ([], [1, 2, 3, 4])
    assert dead([25], empty, MIB, MIB) == ([[1, 2]], [3])
