"""The edits that replace segments: a compaction replaces exactly its inputs, a repair all segments."""

from dataclasses import replace

import pytest

from ambermq.log.errors import LogError
from ambermq.log.manifest.manifest import Horizon, LostRange, Manifest, SealedSegment, Snapshot, create, name_spare
from ambermq.log.manifest.segment_replacement import replace_all_segments, replace_segments


@pytest.mark.parametrize(
    ("inputs", "new"),
    [
        ((1, 2, 3, 4, 5), ((0, 20),)),
        ((1, 2, 3), ((0, 10),)),
        ((4, 5), ((10, 20),)),
        ((1, 2, 3, 4, 5), ((0, 10), (10, 20))),
        ((2, 3), ((10, 10),)),
        ((1, 2, 3, 4, 5), ((0, 10), (10, 10), (10, 20))),
    ],
)
def test_a_segment_of_no_offsets_is_compacted_with_its_neighbours(
    inputs: tuple[int, ...], new: tuple[tuple[int, int], ...]
) -> None:
    """Logs may hold some, of marks alone, that lie between others, at the same offset."""
    spans = ((0, 10), (10, 10), (10, 10), (10, 20), (20, 20))
    sealed = tuple(SealedSegment(number, *span, 4160) for number, span in enumerate(spans, 1))
    snapshots = (Snapshot(6, "base", 20, 0, 0, 9, False),)
    manifest = replace(create(bytes(16)), sealed=sealed, snapshots=snapshots, next_file_id=20)
    added = tuple(SealedSegment(number, *span, 4096) for number, span in enumerate(new, 10))
    after = replace_segments(manifest, inputs=frozenset(inputs), added=added, horizon=Horizon(20, 0))
    assert {one for one in after.sealed if one.file_id >= 10} == set(added)
    assert after.removed == inputs
    with pytest.raises(LogError, match="no new segment covers"):
        replace_segments(manifest, inputs=frozenset(inputs), added=(), horizon=Horizon(20, 0))


def compactable() -> Manifest:
    """Return a manifest with two segments, and a snapshot behind them."""
    sealed = (SealedSegment(1, 0, 10, 4160), SealedSegment(2, 10, 20, 4160))
    return replace(create(bytes(16)), sealed=sealed, snapshots=(Snapshot(3, "base", 20, 0, 0, 9, False),))


@pytest.mark.parametrize(
    ("inputs", "span", "horizon", "why"),
    [
        ({1, 2, 9}, (0, 20), Horizon(20, 0), "1 of 3 segments are missing"),
        ({1, 2}, (0, 20), Horizon(19, 0), "expected a snapshot at the new horizon 19"),
        ({1, 2}, (0, 21), Horizon(20, 0), r"\[0, 21\) does not cover the offsets"),
        ({1, 2}, (0, 10), Horizon(20, 0), "no new segment covers 1 of the replaced"),
    ],
)
def test_a_compaction_that_does_not_fit_is_refused(
    inputs: set[int], span: tuple[int, int], horizon: Horizon, why: str
) -> None:
    """Another one may have run since its plan, and its snapshot may be gone."""
    added = (SealedSegment(10, *span, 4096),)
    with pytest.raises(LogError, match=why):
        replace_segments(compactable(), inputs=frozenset(inputs), added=added, horizon=horizon)


def test_history_never_begins_earlier_again() -> None:
    """A horizon below the current one is refused, and so is one within a replaced segment."""
    snapshots = (Snapshot(3, "base", 20, 0, 0, 9, False), Snapshot(4, "early", 15, 0, 0, 9, False))
    manifest = replace(compactable(), snapshots=snapshots)
    added = (SealedSegment(10, 0, 20, 4096),)
    with pytest.raises(LogError, match="reaches beyond the horizon 15"):
        replace_segments(manifest, inputs=frozenset({1, 2}), added=added, horizon=Horizon(15, 0))
    after = replace_segments(manifest, inputs=frozenset({1, 2}), added=added, horizon=Horizon(20, 0), archive=("a",))
    assert (after.snapshots, after.removed, after.archive) == (snapshots[:1], (1, 2, 4), ("a",))
    back = replace(after, snapshots=snapshots)
    with pytest.raises(LogError, match="the new horizon 15 is below the current one 20"):
        replace_segments(back, inputs=frozenset(), added=(), horizon=Horizon(15, 0))


def test_a_repair_replaces_all_segments() -> None:
    """No segment is active, and what was lost and removed adds to what the manifest has."""
    manifest = name_spare(compactable())
    kept, lost = (SealedSegment(7, 0, 5, 4160),), (LostRange(5, 20),)
    after = replace_all_segments(
        manifest, sealed=kept, next_file_id=8, durable_end=5, start_offset=1 << 20, removed=(1, 2), lost=lost
    )
    assert (after.sealed, after.active, after.spare) == (kept, None, None)
    assert (after.removed, after.lost, after.durable_end) == ((1, 2), lost, 5)
    assert after.generation == manifest.generation + 1
