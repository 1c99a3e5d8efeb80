"""One compaction, from the lock to the commit. A Runner runs the tasks.

    lock       DIR/jobs/lock: one job at a time; the directories of dead jobs are removed
    snapshots  the base and a later one, if they are missing
    plan       engine/compaction/plan.py, with the manifest pinned until the job ends
    count      one task for each segment below the horizon
    rewrite    one task for each group that is worth it, into DIR/jobs/<job>/
    archive    if requested: writes the events that the commit removes
    commit     the broker checks the new segments and adopts them

Rule 1. Until the commit the log only gains two snapshots. If the job ends before, it deletes them, or the next job
removes its directory.
Rule 2. A compaction that saves no bytes commits nothing: history stays as it is.
"""

import os
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Final

from ambermq.engine.compaction.live_records import kept_offsets
from ambermq.engine.compaction.plan import (
    Choice,
    Group,
    History,
    Plan,
    oldest_requested,
    plan_compaction,
    within_snapshots,
)
from ambermq.engine.history.past import open_past
from ambermq.engine.snapshots.files import load_snapshot, write_snapshot
from ambermq.log.compaction.job import CompactionJob, base_path, job_path, lock_jobs, sweep_jobs, write_table
from ambermq.log.compaction.rewrite_tasks import GroupTask, RewrittenSegment, SegmentCount, pack_offsets
from ambermq.log.config import LogConfig
from ambermq.log.errors import LockedError
from ambermq.log.manifest.manifest import Horizon, SealedSegment, Snapshot, load
from ambermq.log.read.log_reader import LogReader, open_reader
from ambermq.log.storage.disk import DiskStorage
from ambermq.log.storage.interface import Storage
from ambermq.tools.compaction.commit_target import CommitTarget
from ambermq.tools.compaction.preview import Outcome, Progress, base_within, choose, end_of_base, fill_outcome
from ambermq.tools.compaction.runner import Runner
from ambermq.tools.terminal.errors import ToolError

__all__ = ["Archive", "Outcome", "run_compaction"]

Archive = Callable[[str, int, int], Sequence[str]]
"""archive(directory, first, last): write the events of [first, last] to an archive; return its files."""

_SPARE_BYTES: Final = 64 << 20
"""The minimum of bytes that a compaction leaves free on the disk, but at most a sixteenth of the file system."""
_FILE_SYSTEM_DIVISOR: Final = 16


class _NoRoom(ToolError):
    """The disk has no room for the segments that a compaction would write."""


class _Job:
    """One compaction of the log in a directory."""

    def __init__(
        self,
        directory: str,
        history: History,
        runner: Runner,
        broker: CommitTarget,
        now_us: int,
        archive: Archive | None,
        progress: Progress,
        config: LogConfig,
        *,
        whole_segments: bool,
        compresses: bool,
        reads: Storage,
    ) -> None:
        self._directory = directory
        self._history = history
        self._runner = runner
        self._broker = broker
        self._now_us = now_us
        self._archive = archive
        self._progress = progress
        self._config = config
        self._storage = DiskStorage()
        self._reads = reads
        """The disk for everything that the job itself reads of the log; the tasks of the runner have their own."""
        self._job = f"{now_us}-{secrets.token_hex(4)}"
        self._outcome = Outcome()
        self._whole_segments = whole_segments
        self._compresses = compresses
        self._taken: list[str] = []
        """The names of the snapshots that only this job needs, until its commit."""

    def run(self) -> Outcome:
        """Run the compaction; return its outcome."""
        with _alone(self._storage, self._directory):
            self._outcome.swept = sweep_jobs(self._storage, self._directory, is_locked=True)
            self._check_history()
            try:
                self._take_snapshots()
                with open_reader(self._directory, self._config, self._reads) as reader:
                    snapshots = self._snapshots(reader)
                    if snapshots:
                        self._compact(reader, self._plan(reader, snapshots))
            finally:
                self._delete_snapshots()
        return self._outcome

    def _check_history(self) -> None:
        """Keep some history if a requested snapshot must stay, even where none was to be kept."""
        manifest = load(self._storage, self._directory)
        if manifest is not None:
            self._history = within_snapshots(manifest, self._history)

    def _delete_snapshots(self) -> None:
        """Delete the snapshots of a job without a commit: only this job needs them."""
        for name in () if self._outcome.is_committed else self._taken:
            # The broker itself may have failed. The snapshots then stay until the horizon passes them.
            with suppress(Exception):
                self._broker.delete_snapshot(name)

    def _take_snapshots(self) -> None:
        """Take the snapshots for the horizon: the base is now if no history is kept, else a moment of the past."""
        if self._history.is_none:
            self._progress("snapshots", 0, 2)
            for number, seals in enumerate((True, False)):
                self._take_snapshot(number + 1, seals=seals)
                self._progress("snapshots", number + 1, 2)
        else:
            self._make_base()

    def _make_base(self) -> None:
        """Write a snapshot at the begin of the history to keep, unless one exists that serves as the base."""
        with open_past(self._directory, self._config, now_us=self._now_us, storage=self._reads) as past:
            end = end_of_base(past, self._history, self._now_us)
            if end is None:
                return
            state = past.state_at(end - 1, lambda done, whole: self._progress("base", done, whole))
            folder, log_id = job_path(self._directory, self._job), past.reader.manifest.log_id
            has_later = any(one.end >= end for one in past.reader.manifest.snapshots)
        self._storage.makedirs(folder)
        try:
            write_snapshot(self._storage, base_path(self._directory, self._job), state, log_id=log_id, end=end)
            self._storage.sync_directory(folder)
            self._taken.append(self._snapshot_name(1))
            self._broker.name_snapshot(self._job, self._snapshot_name(1))
        finally:
            self._storage.remove_tree(folder)
        if not has_later:
            self._take_snapshot(2, seals=False)

    def _take_snapshot(self, number: int, *, seals: bool) -> None:
        self._taken.append(self._snapshot_name(number))
        self._broker.take_snapshot(self._snapshot_name(number), seals=seals)

    def _snapshot_name(self, number: int) -> str:
        return f"compaction-{self._job}-{number}"

    def _snapshots(self, reader: LogReader) -> tuple[Snapshot, ...]:
        """Return the base and all snapshots after it; none if no event lies before the history to keep."""
        snapshots = reader.manifest.snapshots
        if self._history.is_none:
            base = next((one for one in snapshots if one.name == self._snapshot_name(1)), None)
        else:
            base = base_within(reader, self._history, now_us=self._now_us, whole_segments=self._whole_segments)
        keeper = oldest_requested(reader.manifest) if self._history.keeps_snapshots else None
        if base is None or (keeper is not None and keeper.end < base.end):
            # A person has requested that snapshot since the history was chosen.
            return ()
        return snapshots[snapshots.index(base) :]

    def _plan(self, reader: LogReader, snapshots: Sequence[Snapshot]) -> Plan:
        states = (load_snapshot(self._reads, self._directory, reader.manifest, one) for one in snapshots)
        base = snapshots[0]
        return plan_compaction(reader.manifest, Horizon(base.end, base.time_us), map(kept_offsets, states))

    def _compact(self, reader: LogReader, plan: Plan) -> None:
        choice, counts = choose(
            reader,
            plan,
            self._runner,
            self._config,
            self._progress,
            whole_segments=self._whole_segments,
            compresses=self._compresses,
        )
        fill_outcome(self._outcome, plan, choice, counts)
        if not choice.groups:
            return
        folder = job_path(self._directory, self._job)
        self._storage.makedirs(folder)
        try:
            written = self._rewrite(reader, plan, choice, counts, folder)
            self._storage.sync_directory(folder)
            self._commit(reader, plan, choice, counts, written)
        finally:
            self._storage.remove_tree(folder)

    def _rewrite(
        self, reader: LogReader, plan: Plan, choice: Choice, counts: Mapping[int, SegmentCount], folder: str
    ) -> list[RewrittenSegment]:
        self._check_room(sum(group.kept_bytes for group in choice.groups))
        make = partial(_group_task, reader=reader, plan=plan, counts=counts, folder=folder, config=self._config)
        tasks = [make(group) for group in choice.groups]
        sizes = {task.base_offset: sum(one.size for one in task.segments) for task in tasks}
        done, whole = 0, sum(sizes.values())
        stage = f"rewrite {sum(len(task.segments) for task in tasks)} segments"
        self._progress(stage, 0, whole)
        written = []
        for one in self._runner.rewrite(tasks):
            written.append(one)
            done += sizes[one.base_offset]
            self._progress(stage, done, whole)
        return sorted(written, key=lambda one: one.base_offset)

    def _check_room(self, needed_bytes: int) -> None:
        """Raise _NoRoom if the disk has no room for that. A job that writes nothing runs on a full disk too."""
        spare_bytes = min(_SPARE_BYTES, self._storage.total_bytes(self._directory) // _FILE_SYSTEM_DIVISOR)
        free_bytes = self._storage.free_bytes(self._directory) - spare_bytes
        if needed_bytes and needed_bytes > free_bytes:
            raise _NoRoom(
                "the disk has no room for the new segments",
                where=self._directory,
                expected=f"{needed_bytes:,} bytes free",
                found=f"{max(free_bytes, 0):,}, without the {spare_bytes:,} that stay free",
                advice="no segment was rewritten; keep less history, or free disk space",
            )

    def _commit(
        self,
        reader: LogReader,
        plan: Plan,
        choice: Choice,
        counts: Mapping[int, SegmentCount],
        written: Sequence[RewrittenSegment],
    ) -> None:
        outcome, inputs = self._outcome, [one for group in choice.groups for one in group.segments]
        first = reader.manifest.horizon.offset if reader.manifest.horizon else 0
        if self._archive is not None and first < plan.horizon.offset:
            self._progress("archive", 0, 1)
            outcome.archive = tuple(self._archive(self._directory, first, plan.horizon.offset - 1))
            self._progress("archive", 1, 1)
        proposal = CompactionJob(
            version=1,
            log_id=reader.manifest.log_id.hex(),
            horizon=plan.horizon,
            inputs=tuple(one.file_id for one in inputs),
            segments=tuple(written),
            records_before=sum(counts[one.file_id].record_count for one in inputs),
            records_after=sum(one.record_count for one in written),
            archive=tuple(outcome.archive),
        )
        write_table(self._storage, self._directory, self._job, proposal)
        self._progress("commit", 0, 1)
        facts = self._broker.commit(self._job)
        self._progress("commit", 1, 1)
        outcome.is_committed, outcome.job = True, self._job
        outcome.bytes_after = outcome.bytes_before - int(facts["bytes_before"]) + int(facts["bytes_after"])


def run_compaction(
    directory: str,
    history: History,
    runner: Runner,
    broker: CommitTarget,
    *,
    now_us: int,
    whole_segments: bool = False,
    compresses: bool = False,
    archive: Archive | None = None,
    progress: Progress = lambda *_: None,
    config: LogConfig | None = None,
    reads: Storage | None = None,
) -> Outcome:
    """Compact the log in `directory`: keep `history` before `now_us` and the live messages; return the outcome.

    With `whole_segments` no segment is read or rewritten: those without kept records are deleted, the others stay.
    With `compresses` rewritten segments are compressed, and so are segments that were never compressed. `config` is
    the configuration of the log. What the tasks do not read is read from `reads`, by default without a limit. Raises
    ToolError, every LogError and OSError. After an error the log is as before, but may have two more snapshots.
    """
    config = config or LogConfig()
    job = partial(
        _Job,
        directory,
        history,
        runner,
        broker,
        now_us,
        archive,
        progress,
        config,
        compresses=compresses,
        reads=reads or DiskStorage(),
    )
    try:
        return job(whole_segments=whole_segments).run()
    except _NoRoom:
        # Segments without live messages go first: they need no room, and may make enough for the rest.
        if whole_segments or not job(whole_segments=True).run().is_committed:
            raise
    return job(whole_segments=False).run()


def _group_task(
    group: Group,
    *,
    reader: LogReader,
    plan: Plan,
    counts: Mapping[int, SegmentCount],
    folder: str,
    config: LogConfig,
) -> GroupTask:
    return GroupTask(
        tuple(one.at(os.path.realpath(reader.directory)) for one in group.segments),
        reader.manifest.log_id,
        tuple(_kept_of(plan, one, counts) for one in group.segments),
        os.path.realpath(folder),
        config.batch_bytes_max,
        group.compresses,
    )


def _kept_of(plan: Plan, segment: SealedSegment, counts: Mapping[int, SegmentCount]) -> bytes:
    """Return the packed offsets of a segment's kept records, without the missing ones."""
    kept = plan.kept_of(segment)
    packed = counts[segment.file_id].missing
    if packed:
        missing = set(memoryview(packed).cast("Q"))
        kept = type(kept)("Q", [offset for offset in kept if offset not in missing])
    return pack_offsets(kept)


@contextmanager
def _alone(storage: DiskStorage, directory: str) -> Iterator[None]:
    try:
        with lock_jobs(storage, directory, f"pid {os.getpid()}"):
            yield
    except LockedError as error:
        if not error.path.endswith("/jobs/lock"):
            raise
        raise ToolError(
            "another compaction runs",
            where=directory,
            found=error.holder or "a job without a holder yet",
            advice="nothing was changed; wait for it to end",
        ) from error
