"""What a compaction does: where history shall begin, what is kept below, which segments are worth rewriting. Pure.

    base_for          the snapshot that history shall begin with, of those there are
    end_for           where one could be made of the past, where there is none that is old enough
    plan_compaction   the horizon H, KEEP, and the segments that lie below H
    groups_of         of those, once they are counted: which neighbours become one, which stay as they are
    dead_of           of those, before anything is read: which keep nothing at all

Rule 1. The base is never the newest snapshot of all: two stay that a start can begin with.
Rule 2. KEEP is what lives in any snapshot at or after the base. What lives later was live at the base already or lies
above H, so nothing that a later moment needs is missing. Snapshots before the base go with the history below H.
Rule 3. What lies at or above H stays as it is, and so does the segment that H lies in.
Rule 4. A group is neighbours without a gap, so every offset is answered for by a segment afterwards too; what a
segment alone has little garbage stays as it is.
Rule 5. What was compressed once stays compressed, for it may be several times as large else.
"""

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
    "plan_compaction",
]

GARBAGE_PERCENT: Final = 25
"""A segment with less garbage than that is left as it is."""

_SMALL_DIVISOR: Final = 4
"""A segment smaller than this part of the largest is worth merging with small neighbours."""
_EMPTY_BYTES: Final = SEGMENT_HEADER_BYTES + BATCH_HEADER_BYTES


@dataclass(frozen=True, slots=True)
class History:
    """How much history people want to keep; where both are given, what is over either of them goes."""

    age_us: int | None = None
    """Events younger than that, in microseconds; 0 keeps none."""
    size: int | None = None
    """The newest events, so many bytes of segments at least; 0 keeps none."""

    @property
    def is_none(self) -> bool:
        """Whether nothing but what lives is wanted."""
        return self.age_us == 0 or self.size == 0


@dataclass(frozen=True, slots=True)
class Plan:
    """A compaction before anything was read."""

    horizon: Horizon
    """Where history shall begin."""
    kept: "array[int]"
    """KEEP below the horizon: offsets, u64, rising, each once."""
    segments: tuple[SealedSegment, ...]
    """The sealed segments wholly below the horizon, in order of their offsets."""

    def kept_of(self, segment: SealedSegment) -> "array[int]":
        """Return what is kept of a segment."""
        first = bisect_left(self.kept, segment.base_offset)
        return self.kept[first : bisect_left(self.kept, segment.next_offset, first)]


@dataclass(frozen=True, slots=True)
class Group:
    """Neighbours that become one segment."""

    segments: tuple[SealedSegment, ...]
    """In order of their offsets."""
    kept_bytes: int
    """Bytes of their kept records, compressed as far as they are."""
    compresses: bool = False
    """Whether they become a compressed one."""


@dataclass(frozen=True, slots=True)
class Choice:
    """What becomes of each segment below the horizon."""

    groups: list[Group] = field(default_factory=list)
    """Rewritten, those that keep nothing among them."""
    untouched: list[SealedSegment] = field(default_factory=list)
    """Left as they are."""
    dropped: list[SealedSegment] = field(default_factory=list)
    """Of the rewritten ones those of which nothing is kept."""


def base_for(manifest: Manifest, history: History, *, now_us: int, active_bytes: int = 0) -> Snapshot | None:
    """Return the newest snapshot but the last that lies before the history to keep; None where there is none.

    `active_bytes` are those of what is not sealed yet. A base that would not move the horizon is none.
    """
    horizon = manifest.horizon.offset if manifest.horizon else -1
    for snapshot in reversed(manifest.snapshots[:-1]):
        is_old = history.age_us is not None and snapshot.time_us <= now_us - history.age_us
        is_far = history.size is not None and _bytes_after(manifest, snapshot.end) + active_bytes >= history.size
        if (is_old or is_far) and snapshot.end > horizon:
            return snapshot
    return None


def end_for(manifest: Manifest, history: History, *, young_offset: int | None, active_bytes: int = 0) -> int | None:
    """Return where a base could be made for the history to keep, where a segment begins; None: it would win nothing.

    `young_offset` is that of the first event that is too young to go, None where age does not matter.
    """
    begin = manifest.horizon.offset if manifest.horizon else 0
    for segment in reversed(manifest.sealed[1:]):
        end = segment.base_offset
        is_old = young_offset is not None and end <= young_offset
        is_far = history.size is not None and _bytes_after(manifest, end) + active_bytes >= history.size
        if is_old or is_far:
            return end if end > begin else None
    return None


def _bytes_after(manifest: Manifest, offset: int) -> int:
    """Return the bytes of sealed segments that lie wholly at or after an offset."""
    return sum(one.size for one in manifest.sealed if one.base_offset >= offset)


def plan_compaction(manifest: Manifest, horizon: Horizon, kept: Iterable["array[int]"]) -> Plan:
    """Return the plan for a horizon; `kept` are the `kept_offsets` of each snapshot from the base on."""
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
    """Choose, by what was counted of each segment (file id -> count), which neighbours are rewritten as one.

    With `compresses` segments that were never compressed are rewritten too, if all of them lives.
    """
    choice, gathered = Choice(), list[SealedSegment]()
    kept_bytes = 0

    def is_worth_it(segment: SealedSegment) -> bool:
        count = counts[segment.file_id]
        is_to_be_compressed = compresses and not count.is_compressible and count.kept_count > 0
        return is_to_be_compressed or _garbage_percent(segment, count) >= garbage_percent

    def close() -> None:
        nonlocal kept_bytes
        if len(gathered) > 1 or any(is_worth_it(one) for one in gathered):
            compressed = compresses or any(counts[one.file_id].is_compressible for one in gathered)
            choice.groups.append(Group(tuple(gathered), kept_bytes, compressed))
            choice.dropped.extend(one for one in gathered if not counts[one.file_id].kept_count)
        else:
            choice.untouched.extend(gathered)
        gathered.clear()
        kept_bytes = 0

    for segment in plan.segments:
        count = counts[segment.file_id]
        is_small = segment.size * _SMALL_DIVISOR < segment_bytes_max
        is_wanted = is_small or is_worth_it(segment)
        is_next = not gathered or gathered[-1].next_offset == segment.base_offset
        if not (is_wanted and is_next and kept_bytes + count.stored_bytes <= segment_bytes_max):
            close()
        if is_wanted:
            gathered.append(segment)
            kept_bytes += count.stored_bytes
        else:
            choice.untouched.append(segment)
    close()
    return choice


def dead_of(plan: Plan) -> Choice:
    """Choose the segments alone of which nothing is kept; neighbours become one, that answers for their offsets.

    What stands for such ones already is no gain, so it goes along with others only.
    """
    choice, gathered = Choice(), list[SealedSegment]()

    def close() -> None:
        if any(one.size > _EMPTY_BYTES for one in gathered):
            choice.groups.append(Group(tuple(gathered), 0))
            choice.dropped.extend(gathered)
        else:
            choice.untouched.extend(gathered)
        gathered.clear()

    for segment in plan.segments:
        is_dead = not plan.kept_of(segment)
        if not (is_dead and gathered and gathered[-1].next_offset == segment.base_offset):
            close()
        (gathered if is_dead else choice.untouched).append(segment)
    close()
    return choice


def _garbage_percent(segment: SealedSegment, count: SegmentCount) -> int:
    """Return how much of a segment is garbage; one that holds nothing at all has none."""
    if segment.size <= _EMPTY_BYTES:
        return 0
    # Batches have headers and padding, which no rewriting wins back: they are as good as kept.
    content_bytes = segment.size - _EMPTY_BYTES
    if count.kept_count == count.record_count:
        return 0
    return 100 * max(0, content_bytes - count.stored_bytes) // content_bytes
