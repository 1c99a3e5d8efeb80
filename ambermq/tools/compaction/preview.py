"""The preview of a compaction: its horizon, the kept records of each segment, and the segments worth a rewrite.

Rule: nothing is changed here, and no broker gets a request. The tasks of the runner read the segments.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ambermq.engine.compaction.live_records import kept_offsets
from ambermq.engine.compaction.plan import (
    Choice,
    History,
    Plan,
    base_for,
    dead_of,
    end_for,
    groups_of,
    plan_compaction,
    within_snapshots,
)
from ambermq.engine.history.past import Past, PastError, open_past
from ambermq.engine.snapshots.files import load_snapshot
from ambermq.engine.snapshots.retention import base_of
from ambermq.log.compaction.rewrite_tasks import CountTask, SegmentCount, pack_offsets
from ambermq.log.config import LogConfig
from ambermq.log.format.segment import SEGMENT_HEADER_BYTES
from ambermq.log.manifest.manifest import Horizon, SealedSegment, Snapshot
from ambermq.log.read.log_reader import LogReader, SegmentState
from ambermq.log.storage.interface import Storage
from ambermq.tools.compaction.runner import Runner

__all__ = [
    "Outcome",
    "Progress",
    "base_within",
    "choose",
    "end_of_base",
    "fill_outcome",
    "preview_compaction",
    "unsealed_bytes",
]

Progress = Callable[[str, int, int], None]
"""progress(stage, done, total): called with the stage, its bytes done, and all its bytes."""


@dataclass(slots=True)
class Outcome:
    """What a compaction has done, or would do."""

    is_committed: bool = False
    """False for a preview, and if the compaction would save no bytes."""
    horizon: Horizon | None = None
    """The begin of history afterwards; None if no segment can be removed before the history to keep."""
    segments: int = 0
    """The sealed segments below the horizon."""
    untouched: int = 0
    """Those that stay as they are, since they hold little garbage."""
    dropped: int = 0
    """Those without kept records."""
    rewritten: int = 0
    """Those with kept records that are rewritten."""
    segments_after: int = 0
    """The segments below the horizon afterwards."""
    records_before: int = 0
    records_after: int = 0
    """The records in the segments below the horizon: counted ones in a preview, 0 if only whole segments are deleted,
    which are not read."""
    bytes_before: int = 0
    bytes_after: int = 0
    """The bytes of these segments: an estimate in a preview, without the savings of compression."""
    missing: int = 0
    """The live messages that a repair had lost before."""
    job: str = ""
    """The committed job."""
    archive: Sequence[str] = ()
    """The files that hold the removed events."""
    swept: Sequence[str] = field(default=())
    """The dead jobs whose directories were removed."""


def preview_compaction(
    directory: str,
    history: History,
    runner: Runner,
    *,
    now_us: int,
    whole_segments: bool = False,
    compresses: bool = False,
    progress: Progress = lambda *_: None,
    config: LogConfig | None = None,
    reads: Storage | None = None,
) -> Outcome:
    """Return the outcome that `run_compaction` would have, and change nothing: not even a snapshot is taken.

    Instead of a snapshot, the state is folded in memory. Raises the errors of `run_compaction`.
    """
    config, outcome = config or LogConfig(), Outcome()
    with open_past(directory, config, now_us=now_us, storage=reads) as past:
        history = within_snapshots(past.reader.manifest, history)
        plan = _plan(past, history, now_us, whole_segments=whole_segments)
        if plan is not None:
            choice, counts = choose(
                past.reader, plan, runner, config, progress, whole_segments=whole_segments, compresses=compresses
            )
            fill_outcome(outcome, plan, choice, counts)
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
    """Return the choice for each segment, and the counts by file id; counts are 0 with `whole_segments`."""
    if whole_segments:
        return dead_of(plan), {one.file_id: SegmentCount(one.file_id, 0, 0, 0) for one in plan.segments}
    counts = _count_segments(reader, plan, runner, config, progress)
    return groups_of(plan, counts, segment_bytes_max=config.segment_bytes_max, compresses=compresses), counts


def base_within(reader: LogReader, history: History, *, now_us: int, whole_segments: bool) -> Snapshot | None:
    """Return the snapshot at which history shall begin, None if no segment can be removed before one.

    With `whole_segments` it can be the present begin of history: more segments may have no live messages by now.
    """
    base = base_for(reader.manifest, history, now_us=now_us, active_bytes=unsealed_bytes(reader))
    return base_of(reader.manifest) if base is None and whole_segments else base


def _plan(past: Past, history: History, now_us: int, *, whole_segments: bool) -> Plan | None:
    manifest, reader = past.reader.manifest, past.reader
    if history.is_none:
        if past.last_offset is None:
            return None
        state = past.state_at(past.last_offset)
        horizon = Horizon(max(past.end, reader.survey.valid_end), state.time_us)
        sealed = (*manifest.sealed, *_open_as_sealed(reader))
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


def _open_as_sealed(reader: LogReader) -> list[SealedSegment]:
    """Return the open segments as sealed ones: a compaction that keeps no history seals them first."""
    sealed_ids = {one.file_id for one in reader.manifest.sealed}
    return [
        SealedSegment(one.file_id, one.base_offset, one.next_offset, one.size)
        for one in reader.segments()
        if one.state is not SegmentState.SPARE and one.file_id not in sealed_ids and one.size > SEGMENT_HEADER_BYTES
    ]


def end_of_base(past: Past, history: History, now_us: int) -> int | None:
    """Return the end of the snapshot to write for the base; None if one exists, or if it would save nothing."""
    manifest, active_bytes = past.reader.manifest, unsealed_bytes(past.reader)
    young_offset = None
    if history.age_us is not None:
        oldest_us, step = now_us - history.age_us, manifest.clock_step
        try:
            # What is older than the newest step of the clock is as old as that step.
            young_offset = 0 if step and oldest_us < step.time_us else past.offset_at(max(0, oldest_us)) + 1
        except PastError:
            # No event is that old.
            young_offset = 0
    end = end_for(manifest, history, young_offset=young_offset, active_bytes=active_bytes)
    base = base_for(manifest, history, now_us=now_us, active_bytes=active_bytes)
    horizon = manifest.horizon.offset if manifest.horizon else 0
    # An existing snapshot serves if it covers at least half of the range: the fold would save less than it costs.
    return None if end is None or (base is not None and 2 * (base.end - horizon) >= end - horizon) else end


def unsealed_bytes(reader: LogReader) -> int:
    """Return the bytes of the segments that are not sealed."""
    return sum(part.end for part in reader.survey.parts)


def _count_segments(
    reader: LogReader, plan: Plan, runner: Runner, config: LogConfig, progress: Progress
) -> dict[int, SegmentCount]:
    """Check and count every segment below the horizon; return the counts by file id."""
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


def fill_outcome(outcome: Outcome, plan: Plan, choice: Choice, counts: Mapping[int, SegmentCount]) -> None:
    """Set the fields of an outcome by the choice: the counts of segments, records and bytes."""
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
