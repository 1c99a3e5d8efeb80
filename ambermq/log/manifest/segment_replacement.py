"""The edits of a manifest that put other segments in the place of old ones: by a compaction, and by a repair.

Rule 1. A compaction replaces segments only by segments with exactly their offsets, all below the new horizon.
Rule 2. An edit is checked against the manifest on the disk: another compaction may have run since its plan.
Rule 3. A repair replaces every segment. The next recovery makes an active one.
"""

from ambermq.log.errors import LogError
from ambermq.log.manifest.manifest import Horizon, LostRange, Manifest, SealedSegment, next_generation

__all__ = ["replace_all_segments", "replace_segments"]


def replace_segments(
    manifest: Manifest,
    *,
    inputs: frozenset[int],
    added: tuple[SealedSegment, ...],
    horizon: Horizon,
    archive: tuple[str, ...] = (),
) -> Manifest:
    """Return the manifest with `added` segments, under reserved ids, in place of `inputs`; history begins at `horizon`.

    Snapshots before the horizon are removed, because the messages that were live in them are not kept. Raises LogError
    if an input or the snapshot at the horizon is missing, or if history begins later already.
    """
    _check_compaction(manifest, inputs, added, horizon)
    ids = {one.file_id for one in added}
    old = tuple(one.file_id for one in manifest.snapshots if one.end < horizon.offset)
    kept = (one for one in manifest.sealed if one.file_id not in inputs)
    return next_generation(
        manifest,
        sealed=tuple(sorted((*kept, *added), key=lambda one: one.base_offset)),
        snapshots=tuple(one for one in manifest.snapshots if one.file_id not in old),
        removed=(*(one for one in manifest.removed if one not in ids), *sorted(inputs), *old),
        horizon=horizon,
        archive=(*manifest.archive, *(one for one in archive if one not in manifest.archive)),
    )


def _check_compaction(
    manifest: Manifest, inputs: frozenset[int], added: tuple[SealedSegment, ...], horizon: Horizon
) -> None:
    """Raise LogError unless `added` cover exactly the offsets of `inputs`, all below a valid horizon."""
    replaced = [one for one in manifest.sealed if one.file_id in inputs]
    if len(replaced) < len(inputs):
        raise LogError(f"{len(inputs) - len(replaced)} of {len(inputs)} segments are missing: another compaction ran")
    if all(one.end != horizon.offset for one in manifest.snapshots):
        raise LogError(f"expected a snapshot at the new horizon {horizon.offset}, found none: it was deleted")
    if manifest.horizon is not None and manifest.horizon.offset > horizon.offset:
        raise LogError(f"the new horizon {horizon.offset} is below the current one {manifest.horizon.offset}")
    if any(one.next_offset > horizon.offset for one in replaced):
        raise LogError(f"a segment to be replaced reaches beyond the horizon {horizon.offset}")
    # A segment that holds only marks has an empty range. It is replaced with the segment that ends or begins there.
    rest = sorted(replaced, key=lambda one: (-one.base_offset, -one.next_offset))
    for new in sorted(added, key=lambda one: (one.base_offset, one.next_offset)):
        at = new.base_offset
        while rest and rest[-1].base_offset == at and rest[-1].next_offset <= new.next_offset:
            at = rest.pop().next_offset
        if at != new.next_offset:
            raise LogError(
                f"a new segment [{new.base_offset}, {new.next_offset}) does not cover the offsets that it replaces"
            )
    if rest:
        raise LogError(f"no new segment covers {len(rest)} of the replaced segments")


def replace_all_segments(
    manifest: Manifest,
    *,
    sealed: tuple[SealedSegment, ...],
    next_file_id: int,
    durable_end: int,
    start_offset: int,
    removed: tuple[int, ...],
    lost: tuple[LostRange, ...],
) -> Manifest:
    """Return the manifest with every segment replaced and none active, so that the next recovery makes one."""
    return next_generation(
        manifest,
        sealed=sealed,
        active=None,
        spare=None,
        next_file_id=next_file_id,
        durable_end=durable_end,
        start_offset=start_offset,
        removed=(*manifest.removed, *removed),
        lost=(*manifest.lost, *lost),
    )
