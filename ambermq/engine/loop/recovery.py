"""The recovery of an engine: it folds the log into a state, and logs the start of the broker.

Rule 1. The fold begins with the newest valid snapshot; batches below its end are not read. A damaged snapshot is
        reported to the caller, and the one before it is used.
Rule 2. Without a snapshot the fold begins with the first event. If the history begins with a snapshot, its loss is
        damage.
Rule 3. A kill may come after the event of a clock step and before the edit of the manifest that notes it. The fold
        finds such a step, and the edit is made then.
"""

from collections.abc import Callable
from functools import partial

from ambermq.engine.config import EngineConfig
from ambermq.engine.events import ClockStepped
from ambermq.engine.fold.apply import apply
from ambermq.engine.loop.durable_loop import DurableLoop
from ambermq.engine.model.state import EMPTY_STATE, State
from ambermq.engine.model.vhost_mode import VhostMode
from ambermq.engine.records.index_keys import touches_of
from ambermq.engine.records.reader import events_of
from ambermq.engine.routing.router import FieldsOf, no_fields
from ambermq.engine.snapshots.files import NewestSnapshot, newest_snapshot
from ambermq.engine.time_budget import standing_clock
from ambermq.log.errors import DamageError, LogError
from ambermq.log.manifest.manifest import forget_lost, manifest_path, note_clock_step
from ambermq.log.recovery.recovery import Recovery
from ambermq.log.write.ballast import Ballast

__all__ = ["Report", "fold_log", "recover"]

Report = Callable[[LogError], None]
"""Receives the error of a snapshot that was not used: a DamageError, or a ForeignError."""


def fold_log(
    recovery: Recovery, progress: Callable[[int, int], None] | None = None, report: Report | None = None
) -> State:
    """Return the state that a recovery folds to; `progress` gets the number of folded records and the offset.

    Raises DamageError if the log is damaged, or lacks the snapshot that its history begins with.
    """
    return _fold(recovery, progress, report)[0]


def _fold(
    recovery: Recovery, progress: Callable[[int, int], None] | None, report: Report | None
) -> tuple[State, ClockStepped | None]:
    """Return the state, and the newest step of the clock among the folded events."""
    found = _newest(recovery, report)
    state, step = found.state or EMPTY_STATE, None
    records = 0
    for batch in recovery.batches(found.snapshot.end if found.snapshot else 0):
        for event in events_of(batch):
            state = apply(state, event)
            if type(event) is ClockStepped:
                step = event
        records += batch.header.count
        if progress is not None:
            progress(records, batch.header.base_offset)
    return state, step


def recover(
    recovery: Recovery,
    config: EngineConfig,
    now_us: int,
    progress: Callable[[int, int], None] | None = None,
    report: Report | None = None,
    fields_of: FieldsOf = no_fields,
    mode: VhostMode = VhostMode.AUTOMATIC,
    clock_ns: Callable[[], int] = standing_clock,
    ballast: Ballast | None = None,
) -> DurableLoop:
    """Return a loop over the recovered log, ready to serve: its start is durable.

    `fields_of` decodes the fields of a message that muxers match, since the engine knows no encoding. `mode` is the
    mode of a log that was never started; any other log holds its mode. `clock_ns` measures the time of matching.
    Without `ballast` the log has one of its own.
    Raises the errors of `fold_log`, and LogFailed.
    """
    state, step = _fold(recovery, progress, report)
    if not state.epoch:
        state = state.with_fields(mode=mode)
    noted = recovery.manifest.clock_step
    lost = [(lost.first_offset, lost.next_offset) for lost in recovery.manifest.lost]
    log = recovery.log(touches_of=touches_of, ballast=ballast)
    if step is not None and (noted is None or noted.offset < step.offset):
        log.edit_manifest(partial(note_clock_step, offset=step.offset, time_us=step.time_us))
    loop = DurableLoop(log, state, config, fields_of, clock_ns)
    loop.start(now_us, lost)
    loop.snapshots.start(now_us, logged_bytes=recovery.scanned_bytes)
    if lost:
        loop.log.edit_manifest(forget_lost)
    return loop


def _newest(recovery: Recovery, report: Report | None) -> NewestSnapshot:
    """Return the newest valid snapshot at or below the log's end."""
    manifest = recovery.manifest
    found = newest_snapshot(recovery.storage, recovery.directory, manifest, end_max=recovery.valid_end)
    for fault in found.faults:
        if report is not None:
            report(fault)
    horizon = manifest.horizon
    if horizon is not None and (found.snapshot is None or found.snapshot.end < horizon.offset):
        for fault in found.faults:
            raise fault
        expected = f"a snapshot at or after offset {horizon.offset}, where history begins"
        raise DamageError(manifest_path(recovery.directory), 0, expected, f"{len(manifest.snapshots)} snapshots before")
    return found
