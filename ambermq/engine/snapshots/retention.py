"""The retention of snapshots: automatic ones are deleted by count and by age.

Rule 1. The newest snapshot is never deleted automatically, because a start begins with it.
Rule 2. The base of the history is never deleted, because the state before it cannot be computed again.
Rule 3. If there are too many snapshots, automatic ones are deleted to make room for requested ones.
"""

from collections.abc import Iterator

from ambermq.log.manifest.manifest import Manifest, Snapshot

__all__ = ["base_of", "lasting", "prunable"]


def base_of(manifest: Manifest) -> Snapshot | None:
    """Return the snapshot at the horizon; None if the history begins with the first event."""
    horizon = manifest.horizon
    if horizon is None:
        return None
    return next((one for one in manifest.snapshots if one.end == horizon.offset), None)


def lasting(manifest: Manifest) -> int:
    """Return the number of snapshots that are never deleted automatically."""
    base = base_of(manifest)
    return sum(not one.is_automatic or one == base for one in manifest.snapshots)


def prunable(manifest: Manifest, *, now_us: int, keep: int, age_s_max: int, snapshots_max: int) -> frozenset[int]:
    """Return the file ids of the automatic snapshots to delete: beyond `keep`, or older than `age_s_max`.

    More are deleted if all snapshots together exceed `snapshots_max`. With `age_s_max` 0 no snapshot is too old.
    """
    created_us_min = now_us - age_s_max * 1_000_000 if age_s_max else 0
    return frozenset(_prunable(manifest, created_us_min, min(keep, snapshots_max - lasting(manifest))))


def _prunable(manifest: Manifest, created_us_min: int, keep: int) -> Iterator[int]:
    base = base_of(manifest)
    automatic = [one for one in reversed(manifest.snapshots) if one.is_automatic and one != base]
    for index, one in enumerate(automatic):
        if one != manifest.snapshots[-1] and (
            index >= keep or manifest.comparable_us(one.end, one.created_us) < created_us_min
        ):
            yield one.file_id
