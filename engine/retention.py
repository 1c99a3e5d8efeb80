"""Which snapshots go: by count and by age, of those alone that the broker took by itself.

Rule 1. The newest snapshot of all never goes by itself: a start begins with it.
Rule 2. The snapshot that history begins with never goes at all: nothing before it could be known again.
"""

from collections.abc import Iterator

from log.manifest import Manifest, Snapshot

__all__ = ["base_of", "prunable"]


def base_of(manifest: Manifest) -> Snapshot | None:
    """Return the snapshot that history begins with, None where that is the first event."""
    horizon = manifest.horizon
    if horizon is None:
        return None
    return next((one for one in manifest.snapshots if one.end == horizon.offset), None)


def prunable(manifest: Manifest, *, now_us: int, keep: int, age_s_max: int) -> frozenset[int]:
    """Return the file ids of the automatic snapshots that are too many or too old; `age_s_max` 0: none is too old."""
    return frozenset(_prunable(manifest, now_us - age_s_max * 1_000_000 if age_s_max else 0, keep))


def _prunable(manifest: Manifest, created_us_min: int, keep: int) -> Iterator[int]:
    spared = {one.file_id for one in (base_of(manifest), *manifest.snapshots[-1:]) if one is not None}
    automatic = [one for one in reversed(manifest.snapshots) if one.is_automatic]
    for index, one in enumerate(automatic):
        if one.file_id not in spared and (index >= keep or one.created_us < created_us_min):
            yield one.file_id
