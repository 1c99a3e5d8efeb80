"""What a compaction would come to: the horizon, what of each segment is kept, which of them are worth it.

Rule: nothing is changed here, and no broker is asked; segments are read by who runs the tasks.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ambermq.engine.compaction.live_records import kept_offsets
from ambermq.engine.compaction.plan import Choice, History, Plan, base_for, dead_of, end_for, groups_of, plan_compaction
from ambermq.engine.history.past import Past, PastError, open_past
from ambermq.engine.snapshots.files import load_snapshot
from ambermq.engine.snapshots.retention import base_of
from ambermq.log.compaction.rewrite_tasks import CountTask, SegmentCount, pack_offsets
from ambermq.log.config import LogConfig
from ambermq.log.format.segment import SEGMENT_HEADER_BYTES
from ambermq.log.manifest.manifest import Horizon, SealedSegment, Snapshot
from ambermq.log.read.log_reader import LogReader, SegmentState
from ambermq.tools.compaction.runner import Runner

__all__ = [
    "Outcome",
    "Progress",
    "base_within",
    "choose",
    "end_of_base",
    "foresee_compaction",
    "tell_choice",
    "unsealed_bytes",
]

Progress = Callable[[str, int, int], None]
"""Hears the stage, the bytes done in it, and those to do."""


@dataclass(slots=True)
class Outcome:
    """What a compaction has done, or would do."""

    is_committed: bool = False
    """False where there was nothing to win, or it was only asked what would be done."""
    horizon: Horizon | None = None
    """Where history begins now; None where nothing that can go lies before the history to keep."""
    segments: int = 0
    """Sealed segments below the horizon."""
    untouched: int = 0
    """Of those, left as they are, for they hold little garbage."""
    dropped: int = 0
    """Of those, of which nothing was kept."""
    rewritten: int = 0
    """Of those, of which something was kept."""
    segments_after: int = 0
    """Segments below the horizon then."""
    records_before: int = 0
    records_after: int = 0
    """Records in the segments below the horizon; of what is only asked for, as far as it was counted; 0 and 0 where
    only whole segments go, which nobody reads."""
    bytes_before: int = 0
    bytes_after: int = 0
    """Bytes of these segments; of what is only asked for, about, and without what compressing it will save."""
    missing: int = 0
    """Live messages that were lost before, by a repair."""
    job: str = ""
    """Of the one that was committed."""
    archive: Sequence[str] = ()
    """Files that hold the events which went."""
    swept: Sequence[str] = field(default=())
    """Dead jobs whose directories were removed."""


def foresee_compaction(
    directory: str,
    history: History,
    runner: Runner,
    *,
    now_us: int,
    whole_segments: bool = False,
    compresses: bool = False,
    progress: Progress = lambda *_: None,
    config: LogConfig | None = None,
) -> Outcome:
    """Return what `run_compaction` would come to, and change nothing: not even a snapshot is taken.

    Where it would take one, the state is folded instead. Raises what `run_compaction` does.
    """
    config, outcome = config or LogConfig(), Outcome()
    with open_past(directory, config, now_us=now_us) as past:
        plan = _foreseen(past, history, now_us, whole_segments=whole_segments)
        if plan is not None:
            choice, counts = choose(
                past.reader, plan, runner, config, progress, whole_segments=whole_segments, compresses=compresses
            )
            tell_choice(outcome, plan, choice, counts)
    return outcome


def choose(
    reader: LogReader,
    plan: Plan,
    runner: Runner,
    config: LogConfig,
    progress: Progress,
    *,
    whole_segments: bool,
    compresses: bool,
) -> tuple[Choice, dict[int, SegmentCount]]:
    """Return what becomes of each segment, and the counts by file id: zeros with `whole_segments`, for none is read."""
    if whole_segments:
        return dead_of(plan), {one.file_id: SegmentCount(one.file_id, 0, 0, 0) for one in plan.segments}
    counts = _count_segments(reader, plan, runner, config, progress)
    return groups_of(plan, counts, segment_bytes_max=config.segment_bytes_max, compresses=compresses), counts


def base_within(reader: LogReader, history: History, *, now_us: int, whole_segments: bool) -> Snapshot | None:
    """Return the snapshot that history shall begin with, of those there are; None: nothing that can go lies before.

    Where only whole segments go it may be the one that history begins with already: more of them may be dead by now.
    """
    base = base_for(reader.manifest, history, now_us=now_us, active_bytes=unsealed_bytes(reader))
    return base_of(reader.manifest) if base is None and whole_segments else base


def _foreseen(past: Past, history: History, now_us: int, *, whole_segments: bool) -> Plan | None:
    manifest, reader = past.reader.manifest, past.reader
    if history.is_none:
        if past.last_offset is None:
            return None
        state = past.state_at(past.last_offset)
        horizon = Horizon(max(past.end, reader.survey.valid_end), state.time_us)
        sealed = (*manifest.sealed, *_still_open(reader))
        return plan_compaction(replace(manifest, sealed=sealed), horizon, [kept_offsets(state)])
    end = end_of_base(past, history, now_us)
    if end is not None:
        state = past.state_at(end - 1)
        return plan_compaction(manifest, Horizon(end, state.time_us), [kept_offsets(state)])
    base = base_within(reader, history, now_us=now_us, whole_segments=whole_segments)
    if base is None:
        return None
    later = manifest.snapshots[manifest.snapshots.index(base) :]
    kept = (kept_offsets(load_snapshot(reader.storage, reader.directory, manifest, one)) for one in later)
    return plan_compaction(manifest, Horizon(base.end, base.time_us), kept)


def _still_open(reader: LogReader) -> list[SealedSegment]:
    """Return what is written to as the sealed segments that a compaction which keeps no history makes of it."""
    named = {one.file_id for one in reader.manifest.sealed}
    return [
        SealedSegment(one.file_id, one.base_offset, one.next_offset, one.size)
        for one in reader.segments()
        if one.state is not SegmentState.SPARE and one.file_id not in named and one.size > SEGMENT_HEADER_BYTES
    ]


def end_of_base(past: Past, history: History, now_us: int) -> int | None:
    """Return the end of the snapshot of the past that is wanted; None where one is there, or would win nothing."""
    manifest, active_bytes = past.reader.manifest, unsealed_bytes(past.reader)
    young_offset = None
    if history.age_us is not None:
        try:
            young_offset = past.offset_at(max(0, now_us - history.age_us)) + 1
        except PastError:
            # Nothing is that old.
            young_offset = 0
    end = end_for(manifest, history, young_offset=young_offset, active_bytes=active_bytes)
    base = base_for(manifest, history, now_us=now_us, active_bytes=active_bytes)
    horizon = manifest.horizon.offset if manifest.horizon else 0
    # A fold costs more than half of what it would win besides the snapshot that is there.
    return None if end is None or (base is not None and 2 * (base.end - horizon) >= end - horizon) else end


def unsealed_bytes(reader: LogReader) -> int:
    """Return the bytes of what is not sealed yet."""
    return sum(part.end for part in reader.survey.parts)


def _count_segments(
    reader: LogReader, plan: Plan, runner: Runner, config: LogConfig, progress: Progress
) -> dict[int, SegmentCount]:
    """Let every segment below the horizon be checked and counted; return the counts by file id."""
    sizes = {one.file_id: one.size for one in plan.segments}
    done, whole = 0, sum(sizes.values())
    stage = f"count {len(sizes)} segments"
    progress(stage, 0, whole)
    tasks = [
        CountTask(
            one.at(os.path.realpath(reader.directory)),
            reader.manifest.log_id,
            pack_offsets(plan.kept_of(one)),
            config.batch_bytes_max,
        )
        for one in plan.segments
    ]
    counts = {}
    for count in runner.count(tasks):
        counts[count.file_id] = count
        done += sizes[count.file_id]
        progress(stage, done, whole)
    return counts


def tell_choice(outcome: Outcome, plan: Plan, choice: Choice, counts: Mapping[int, SegmentCount]) -> None:
    """Fill in what is chosen, and how it would end."""
    untouched_bytes = sum(one.size for one in choice.untouched)
    outcome.horizon = plan.horizon
    outcome.segments, outcome.untouched = len(plan.segments), len(choice.untouched)
    outcome.dropped = len(choice.dropped)
    outcome.rewritten = outcome.segments - outcome.untouched - outcome.dropped
    outcome.segments_after = outcome.untouched + len(choice.groups)
    outcome.records_before = sum(one.record_count for one in counts.values())
    kept = sum(counts[one.file_id].kept_count for group in choice.groups for one in group.segments)
    outcome.records_after = kept + sum(counts[one.file_id].record_count for one in choice.untouched)
    outcome.bytes_before = sum(one.size for one in plan.segments)
    outcome.bytes_after = untouched_bytes + sum(group.kept_bytes for group in choice.groups)
    outcome.missing = sum(len(one.missing) // 8 for one in counts.values())
