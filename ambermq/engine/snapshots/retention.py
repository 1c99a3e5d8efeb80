"""Which snapshots go: by count and by age, of those alone that the broker took by itself.

Rule 1. The newest snapshot of all never goes by itself: a start begins with it.
Rule 2. The snapshot that history begins with never goes at all: nothing before it could be known again.
Rule 3. Where there are too many in all the broker's own make room for those that somebody asked for.
"""

from collections.abc import Iterator

from ambermq.log.manifest.manifest import Manifest, Snapshot

__all__ = ["base_of", "lasting", "prunable"]


def base_of(manifest: Manifest) -> Snapshot | None:
    """Return the snapshot that history begins with, None where that is the first event."""
    horizon = manifest.horizon
    if horizon is None:
        return None
    return next((one for one in manifest.snapshots if one.end == horizon.offset), None)


def lasting(manifest: Manifest) -> int:
    """Return how many snapshots there are that do not go by themselves, however many come."""
    base = base_of(manifest)
    return sum(not one.is_automatic or one == base for one in manifest.snapshots)


def prunable(manifest: Manifest, *, now_us: int, keep: int, age_s_max: int, snapshots_max: int) -> frozenset[int]:
    """Return the file ids of the automatic snapshots that are too many or too old; `age_s_max` 0: none is too old.

    Too many are those beyond `keep`, and beyond `snapshots_max` together with all the others.
    """
    created_us_min = now_us - age_s_max * 1_000_000 if age_s_max else 0
    return frozenset(_prunable(manifest, created_us_min, min(keep, snapshots_max - lasting(manifest))))


def _prunable(manifest: Manifest, created_us_min: int, keep: int) -> Iterator[int]:
    base = base_of(manifest)
    automatic = [one for one in reversed(manifest.snapshots) if one.is_automatic and one != base]
    for index, one in enumerate(automatic):
        if one != manifest.snapshots[-1] and (index >= keep or one.created_us < created_us_min):
            yield one.file_id
