"""The plan of a compaction: the new horizon, the records to keep below it, and the segments to rewrite. Pure.

    base_for          the existing snapshot that the history begins with
    end_for           the offset for a new snapshot of the past, if no existing one is old enough
    plan_compaction   the horizon H, the kept offsets KEEP, and the segments below H
    groups_of         with the counts of these segments: which neighbours are merged, which stay
    dead_of           before any segment is read: the segments that keep nothing

Rule 1. The base is never the newest snapshot, so two snapshots remain that a start can begin with.
Rule 2. KEEP has the messages that are live in a snapshot at or after the base. A message that is live later was live at
the base or is above H, so no later moment lacks a message. Snapshots before the base are deleted.
Rule 3. Everything at or above H stays, and so does the segment that contains H.
Rule 4. A group has neighbours without a gap, so each offset still belongs to a segment afterwards. A single segment
with little garbage stays.
Rule 5. A compressed segment stays compressed, because uncompressed it may be several times as large.
"""

import re
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from ambermq.log.compaction.rewrite_tasks import SegmentCount
from ambermq.log.format.batch import BATCH_HEADER_BYTES
from ambermq.log.format.segment import SEGMENT_HEADER_BYTES
from ambermq.log.manifest.manifest import Horizon, Manifest, SealedSegment, Snapshot

__all__ = [
    "GARBAGE_PERCENT",
    "Choice",
    "Group",
    "History",
    "Plan",
    "base_for",
    "dead_of",
    "end_for",
    "groups_of",
    "oldest_requested",
    "plan_compaction",
    "within_snapshots",
]

GARBAGE_PERCENT: Final = 25
"""A segment with less garbage than this stays as it is."""

_SMALL_DIVISOR: Final = 4
"""A segment smaller than 1/4 of the largest size is merged with small neighbours."""
_OFFSET_MAX: Final = (1 << 64) - 1
_COMPACTION_NAME: Final = re.compile(r"compaction-\d+-[0-9a-f]{8}-\d")
"""The names that compactions give to their snapshots."""
_EMPTY_BYTES: Final = SEGMENT_HEADER_BYTES + BATCH_HEADER_BYTES


@dataclass(frozen=True, slots=True)
class History:
    """The history to keep. If both limits are given, both apply."""

    age_us: int | None = None
    """Keep events younger than this, in microseconds; 0 keeps none."""
    size: int | None = None
    """Keep the newest events, at least this many bytes of segments; 0 keeps none."""
    keeps_snapshots: bool = False
    """Keep every snapshot that a person requested, and the history from the oldest one on."""

    @property
    def is_none(self) -> bool:
        """Whether only live messages are kept."""
        return self.age_us == 0 or self.size == 0


@dataclass(frozen=True, slots=True)
class Plan:
    """A compaction before any segment is read."""

    horizon: Horizon
    """The offset where the history will begin."""
    kept: "array[int]"
    """KEEP below the horizon: offsets, u64, ascending, each once."""
    segments: tuple[SealedSegment, ...]
    """The sealed segments that are wholly below the horizon, in order of their offsets."""

    def kept_of(self, segment: SealedSegment) -> "array[int]":
        """Return the kept offsets of a segment."""
        first = bisect_left(self.kept, segment.base_offset)
        return self.kept[first : bisect_left(self.kept, segment.next_offset, first)]


@dataclass(frozen=True, slots=True)
class Group:
    """Neighbouring segments that are merged into one."""

    segments: tuple[SealedSegment, ...]
    """In order of their offsets."""
    kept_bytes: int
    """The stored bytes of their kept records."""
    compresses: bool = False
    """Whether the new segment is compressed."""


@dataclass(frozen=True, slots=True)
class Choice:
    """The decision for each segment below the horizon."""

    groups: list[Group] = field(default_factory=list)
    """The segments to rewrite, with those that keep nothing."""
    untouched: list[SealedSegment] = field(default_factory=list)
    """The segments that stay."""
    dropped: list[SealedSegment] = field(default_factory=list)
    """Those of the rewritten segments that keep nothing."""


def base_for(manifest: Manifest, history: History, *, now_us: int, active_bytes: int = 0) -> Snapshot | None:
    """Return the newest snapshot before the history to keep, but never the last snapshot; None if there is none.

    `active_bytes` is the size of the active segment. A base that does not move the horizon does not count.
    """
    horizon = manifest.horizon.offset if manifest.horizon else -1
    end_max = _end_max(manifest, history)
    for snapshot in reversed(manifest.snapshots[:-1]):
        time_us = manifest.comparable_us(snapshot.end, snapshot.time_us)
        is_old = history.age_us is not None and time_us <= now_us - history.age_us
        is_far = history.size is not None and _bytes_after(manifest, snapshot.end) + active_bytes >= history.size
        if (is_old or is_far) and horizon < snapshot.end <= end_max:
            return snapshot
    return None


def end_for(manifest: Manifest, history: History, *, young_offset: int | None, active_bytes: int = 0) -> int | None:
    """Return the offset for a new base before the history to keep, where a segment begins; None if it frees nothing.

    `young_offset` is the offset of the first event that is too young to remove, None if age does not matter.
    """
    begin, end_max = manifest.horizon.offset if manifest.horizon else 0, _end_max(manifest, history)
    for segment in reversed(manifest.sealed[1:]):
        end = segment.base_offset
        is_old = young_offset is not None and end <= young_offset
        is_far = history.size is not None and _bytes_after(manifest, end) + active_bytes >= history.size
        if (is_old or is_far) and end <= end_max:
            return end if end > begin else None
    return None


def oldest_requested(manifest: Manifest) -> Snapshot | None:
    """Return the oldest snapshot that a person requested: neither the broker nor a compaction took it."""
    requested = (one for one in manifest.snapshots if not one.is_automatic)
    return next((one for one in requested if not _COMPACTION_NAME.fullmatch(one.name)), None)


def within_snapshots(manifest: Manifest, history: History) -> History:
    """Return the history to keep, but some of it if a requested snapshot that must stay needs some."""
    if history.is_none and history.keeps_snapshots and oldest_requested(manifest) is not None:
        return History(size=1, keeps_snapshots=True)
    return history


def _end_max(manifest: Manifest, history: History) -> int:
    """Return the largest offset at which history may begin."""
    snapshot = oldest_requested(manifest) if history.keeps_snapshots else None
    return _OFFSET_MAX if snapshot is None else snapshot.end


def _bytes_after(manifest: Manifest, offset: int) -> int:
    """Return the bytes of sealed segments that are wholly at or after an offset."""
    return sum(one.size for one in manifest.sealed if one.base_offset >= offset)


def plan_compaction(manifest: Manifest, horizon: Horizon, kept: Iterable["array[int]"]) -> Plan:
    """Return the plan for a horizon; `kept` has the `kept_offsets` of each snapshot from the base on."""
    offsets = set[int]()
    for one in kept:
        offsets.update(one[: bisect_left(one, horizon.offset)])
    below = tuple(one for one in manifest.sealed if one.next_offset <= horizon.offset)
    return Plan(horizon, array("Q", sorted(offsets)), below)


def groups_of(
    plan: Plan,
    counts: Mapping[int, SegmentCount],
    *,
    segment_bytes_max: int,
    garbage_percent: int = GARBAGE_PERCENT,
    compresses: bool = False,
) -> Choice:
    """Return the choice of neighbours to merge, by the counts of the segments (file id -> count).

    With `compresses` uncompressed segments are rewritten too, even if all of their messages are live.
    """
    choice, group = Choice(), list[SealedSegment]()
    kept_bytes = 0

    def is_worth_it(segment: SealedSegment) -> bool:
        count = counts[segment.file_id]
        is_to_be_compressed = compresses and not count.is_compressible and count.kept_count > 0
        return is_to_be_compressed or _garbage_percent(segment, count) >= garbage_percent

    def close() -> None:
        nonlocal kept_bytes
        if len(group) > 1 or any(is_worth_it(one) for one in group):
            compressed = compresses or any(counts[one.file_id].is_compressible for one in group)
            choice.groups.append(Group(tuple(group), kept_bytes, compressed))
            choice.dropped.extend(one for one in group if not counts[one.file_id].kept_count)
        else:
            choice.untouched.extend(group)
        group.clear()
        kept_bytes = 0

    for segment in plan.segments:
        count = counts[segment.file_id]
        is_small = segment.size * _SMALL_DIVISOR < segment_bytes_max
        is_wanted = is_small or is_worth_it(segment)
        is_next = not group or group[-1].next_offset == segment.base_offset
        if not (is_wanted and is_next and kept_bytes + count.stored_bytes <= segment_bytes_max):
            close()
        if is_wanted:
            group.append(segment)
            kept_bytes += count.stored_bytes
        else:
            choice.untouched.append(segment)
    close()
    return choice


def dead_of(plan: Plan) -> Choice:
    """Return the choice of only those segments that keep nothing; neighbours become one empty segment.

    An empty segment frees nothing, so it is only rewritten together with others.
    """
    choice, group = Choice(), list[SealedSegment]()

    def close() -> None:
        if any(one.size > _EMPTY_BYTES for one in group):
            choice.groups.append(Group(tuple(group), 0))
            choice.dropped.extend(group)
        else:
            choice.untouched.extend(group)
        group.clear()

    for segment in plan.segments:
        is_dead = not plan.kept_of(segment)
        if not (is_dead and group and group[-1].next_offset == segment.base_offset):
            close()
        (group if is_dead else choice.untouched).append(segment)
    close()
    return choice


def _garbage_percent(segment: SealedSegment, count: SegmentCount) -> int:
    """Return the garbage of a segment in percent; an empty segment has none."""
    if segment.size <= _EMPTY_BYTES:
        return 0
    # If all records are kept, only headers and padding of batches are left, which a rewrite cannot free.
    content_bytes = segment.size - _EMPTY_BYTES
    if count.kept_count == count.record_count:
        return 0
    return 100 * max(0, content_bytes - count.stored_bytes) // content_bytes
