"""The snapshots of a running broker: a tick holds a reference to the state, then a lane writes it slowly to a file.

    requested or due  step: the tick is written, so the state is the fold of the log; the job holds both
    writing           the lane writes the state to a file, block by block, and syncs it
    written           completed: when the log is durable up to the snapshot's end, the manifest gets the file
    placed            completed: the answer leaves, and retention deletes other snapshots

Rule 1. One snapshot is written at a time. The others wait in a bounded queue, each with its own state.
Rule 2. A failure is reported and ends only its snapshot, never the broker.
Rule 3. Threads share a `_Job`. The loop creates it completely, and the lane sets its `outcome` last.
Rule 4. A broker that stops drops unfinished jobs. The next start deletes their files.
"""

import errno
from collections import deque
from collections.abc import Sequence
from typing import Any, Final, final

from ambermq.engine.commands import DeleteSnapshot, InspectSnapshots, SnapshotCommand, TakeSnapshot
from ambermq.engine.config import EngineConfig
from ambermq.engine.effects import NOW, Answered, Effect, RefusedCommand
from ambermq.engine.errors import Refused
from ambermq.engine.model.state import State
from ambermq.engine.snapshots.files import WriteCancelled, write_snapshot
from ambermq.engine.snapshots.retention import base_of, lasting, prunable
from ambermq.log.manifest.manifest import Snapshot, forget_snapshots, snapshots_path
from ambermq.log.manifest.snapshot_placement import Placement, sweep, temporary_path
from ambermq.log.storage.worker_threads import Lane
from ambermq.log.write.log import Log
from ambermq.snapshot.persistent_queue import PersistentQueue

__all__ = ["Snapshotter", "snapshot_attributes"]

_NEVER: Final = 1 << 62
_PAUSE_S: Final = 0.001
"""The minimum pause after each block, so that the loop waits for the interpreter at most for one block."""
_RELEASE_WORDS: Final = 8 * 1024
_MESSAGE_BYTES: Final = 9
_TIME_BYTES: Final = 17
_SCHEDULED_EVENTS: Final = 40
"""An event that schedules messages counts as so many events. Each has mostly one message, while others are joined."""
_TIMED_EVENTS: Final = 8
"""An event with times to live of messages counts as so many: it takes that long in a start."""
_QUEUE_BYTES: Final = 1024
_NO_SPACE: Final = frozenset({errno.ENOSPC, errno.EDQUOT})


def snapshot_attributes(snapshot: Snapshot) -> dict[str, Any]:
    """Return the attributes of a snapshot: `end` is an offset, times are in microseconds, `bytes` the file's size."""
    return {
        "name": snapshot.name,
        "end": snapshot.end,
        "time_us": snapshot.time_us,
        "created_us": snapshot.created_us,
        "bytes": snapshot.size,
        "is_automatic": snapshot.is_automatic,
    }


class _Job:
    """A snapshot that waits, is written, or is placed."""

    __slots__ = ("key", "outcome", "placement", "snapshot", "state", "waits")

    def __init__(self, key: Any, snapshot: Snapshot, state: State, *, waits: bool) -> None:
        self.key = key
        """The key of the command, None for an automatic snapshot."""
        self.snapshot = snapshot
        self.state: State | None = state
        """The writer takes it, because it may be the last holder of most of it."""
        self.waits = waits
        self.outcome: int | Exception | None = None
        """The file's size, or the error."""
        self.placement: Placement | None = None

    @property
    def is_done(self) -> bool:
        """Whether it is placed or has failed."""
        return self.placement is not None and self.placement.is_done


def _moved(due: int, before: int, after: int, now: int) -> int:
    """Return when a snapshot is due after a change of its limit from `before` to `after`; 0 is never."""
    if not after:
        return _NEVER
    return due - before + after if before else now + after


@final
class Snapshotter:
    """The snapshots of one log; the loop calls everything but `_write`, which is the lane's."""

    def __init__(self, log: Log, config: EngineConfig) -> None:
        self.faults: list[str] = []
        """The errors of automatic snapshots, for the server to log."""
        self.written_bytes = self.expected_bytes = 0
        """The progress of the snapshot that is being written, and the estimated size of its file; 0 without one."""
        self._log = log
        self._config = config
        self._commands: list[SnapshotCommand] = []
        self._jobs: deque[_Job] = deque()
        self._deleting: list[tuple[Any, Snapshot]] = []
        self._lane: Lane | None = None
        self._due_us = _NEVER
        self.correction_us = 0
        """The difference between the time of day and the `now_us` of the calls, which no step of the clock changes."""
        self.next_bytes = self.next_end = self.next_us = _NEVER
        """Nothing is due before the log has written so many bytes or has this end, nor before that time."""
        self._not_before_us = 0
        self._is_full_reported = False

    def start(self, now_us: int, *, logged_bytes: int) -> None:
        """Start automatic snapshots; `logged_bytes` were logged since the last one."""
        snapshots = self._log.manifest.snapshots
        logged_events = self._log.log_end - (snapshots[-1].end if snapshots else 0)
        self._rearm(now_us, logged_bytes=logged_bytes, logged_events=logged_events)

    def reconfigure(self, config: EngineConfig, now_us: int) -> None:
        """Use another configuration; what was logged since the last snapshot counts on."""
        before, self._config = self._config, config
        log = self._log
        self.next_bytes = _moved(self.next_bytes, before.snapshot_bytes, config.snapshot_bytes, log.written_bytes)
        self.next_end = _moved(self.next_end, before.snapshot_events, config.snapshot_events, log.log_end)
        before_us, after_us = 1_000_000 * before.snapshot_interval_s, 1_000_000 * config.snapshot_interval_s
        self._due_us = _moved(self._due_us, before_us, after_us, now_us)
        self.next_us = 0 if self._commands else self._due_us
        self._not_before_us += 1_000_000 * (config.snapshot_pause_s - before.snapshot_pause_s)

    def note_scheduled(self) -> None:
        """Count an event that schedules messages: a start folds it as long as many others."""
        self._count_more(_SCHEDULED_EVENTS - 1)

    def note_timed(self) -> None:
        """Count an event of messages with times to live of their own."""
        self._count_more(_TIMED_EVENTS - 1)

    def _count_more(self, events: int) -> None:
        if self.next_end != _NEVER:
            self.next_end -= events

    def submit(self, command: SnapshotCommand) -> None:
        """Queue a command until the end of the tick."""
        self._commands.append(command)
        self.next_us = 0

    def is_due(self, now_us: int) -> bool:
        """Return whether `step` has work to do, so that the tick must be written."""
        if self._commands:
            return True
        log = self._log
        is_due = log.written_bytes >= self.next_bytes or log.log_end >= self.next_end or now_us >= self._due_us
        return is_due and now_us >= self._not_before_us and not self._jobs

    @property
    def is_busy(self) -> bool:
        """Whether a snapshot is being taken or deleted."""
        return bool(self._jobs or self._deleting)

    def step(self, state: State, now_us: int) -> list[Effect]:
        """Execute the queued commands or a due snapshot, and return the answers. The log must end with `state`."""
        effects: list[Effect] = []
        if not self._commands:
            self._take_automatic(state, now_us)
        commands, self._commands = self._commands, []
        self.next_us = self._due_us
        for command in commands:
            if type(command) is TakeSnapshot and command.seals and self._log.awaits_spare:
                # The seal needs the spare, which is being made or allocated: the driver's next sweep tries again.
                self._commands.append(command)
                self.next_us = 0
                continue
            try:
                effects += self._execute(command, state, now_us)
            except Refused as refusal:
                effects.append(RefusedCommand(command.key, refusal.condition, refusal.description))
        return effects

    def completed(self, now_us: int) -> list[Effect]:
        """Advance the jobs that threads have finished, and return the answers that may leave now."""
        effects: list[Effect] = []
        while self._jobs and self._advance(self._jobs[0], now_us, effects):
            self._jobs.popleft()
            if self._jobs:
                self._wake()
        if self._deleting:
            named = {one.file_id for one in self._log.manifest.snapshots}
            gone = [one for one in self._deleting if one[1].file_id not in named]
            self._deleting = [one for one in self._deleting if one[1].file_id in named]
            effects += [Answered(key, snapshot_attributes(snapshot), NOW) for key, snapshot in gone]
        return effects

    def _execute(self, command: SnapshotCommand, state: State, now_us: int) -> Sequence[Effect]:
        if type(command) is TakeSnapshot:
            return self._take(command, state, now_us)
        if type(command) is DeleteSnapshot:
            return self._delete(command)
        assert type(command) is InspectSnapshots
        rows = [snapshot_attributes(one) for one in self._log.manifest.snapshots]
        return [Answered(command.key, command.read(rows, self._room()), NOW)]

    def _take(self, command: TakeSnapshot, state: State, now_us: int) -> list[Effect]:
        if len(self._jobs) > self._config.snapshots_waiting_max:
            why = f"{len(self._jobs)} snapshots are being taken already (snapshots_waiting_max)"
            raise Refused("amqp:resource-limit-exceeded", why)
        if not self._room():
            raise Refused("amqp:resource-limit-exceeded", f"there are {self._config.snapshots_max} snapshots already")
        snapshot = self._add_job(command, state, now_us)
        if command.seals:
            self._log.seal_active(now_us)
        return [] if command.waits else [Answered(command.key, self._answer(snapshot))]

    def _take_automatic(self, state: State, now_us: int) -> None:
        snapshots = self._log.manifest.snapshots
        has_events = not snapshots or snapshots[-1].end < self._log.log_end
        if has_events and self._room():
            self._add_job(None, state, now_us)
        elif has_events:
            self._report_full()
        self._rearm(now_us)

    def _room(self) -> int:
        """Return how many more snapshots may be requested; automatic ones are deleted to make room for them."""
        requested = sum(not job.snapshot.is_automatic and not job.is_done for job in self._jobs)
        return max(0, self._config.snapshots_max - lasting(self._log.manifest) - requested)

    def _report_full(self) -> None:
        """Report once that no automatic snapshot is taken, until the next one is."""
        if not self._is_full_reported:
            self._is_full_reported = True
            self.faults.append(
                f"no room for automatic snapshots: there are {self._config.snapshots_max} requested ones "
                f"(snapshots_max), and starts become slower; delete some"
            )

    def _add_job(self, command: TakeSnapshot | None, state: State, now_us: int) -> Snapshot:
        """Add a job with a reference to the state, and return its snapshot."""
        self._is_full_reported = False
        end = self._log.log_end
        name = self._free_name(f"auto-{end}") if command is None else self._checked_name(command.name, end)
        snapshot = Snapshot(0, name, end, state.time_us, now_us + self.correction_us, 0, is_automatic=command is None)
        waits = command is not None and command.waits
        self._jobs.append(_Job(command.key if command else None, snapshot, state, waits=waits))
        if len(self._jobs) == 1:
            self._wake()
        # The snapshot is placed when the log is durable up to this end, so a sync must not be delayed.
        self._log.request_sync()
        self._rearm(now_us)
        return snapshot

    def _rearm(self, now_us: int, *, logged_bytes: int = 0, logged_events: int = 0) -> None:
        config = self._config
        if config.snapshot_bytes:
            self.next_bytes = self._log.written_bytes + max(0, config.snapshot_bytes - logged_bytes)
        if config.snapshot_events:
            self.next_end = self._log.log_end + max(0, config.snapshot_events - logged_events)
        if config.snapshot_interval_s:
            self._due_us = self.next_us = now_us + config.snapshot_interval_s * 1_000_000
        self._not_before_us = now_us + config.snapshot_pause_s * 1_000_000

    def _names(self) -> set[str]:
        named = {one.name for one in self._log.manifest.snapshots}
        return named | {job.snapshot.name for job in self._jobs}

    def _checked_name(self, name: str, end: int) -> str:
        if not name:
            return self._free_name(f"snapshot-{end}")
        bytes_max = self._config.name_bytes_max
        if not name.isprintable() or "/" in name or len(name.encode(errors="replace")) > bytes_max:
            message = f"a snapshot's name has 1 to {bytes_max} bytes of printable text without '/', found {name!r:.80}"
            raise Refused("amqp:invalid-field", message)
        if name in self._names():
            raise Refused("amqp:precondition-failed", f"there is a snapshot {name!r} already")
        return name

    def _free_name(self, name: str) -> str:
        names, number, free = self._names(), 1, name
        while free in names:
            number += 1
            free = f"{name}-{number}"
        return free

    def _delete(self, command: DeleteSnapshot) -> list[Effect]:
        manifest = self._log.manifest
        snapshot = next((one for one in manifest.snapshots if one.name == command.name), None)
        if snapshot is None:
            return [Answered(command.key, None, NOW)]
        if snapshot == base_of(manifest):
            message = f"history begins with the snapshot {snapshot.name!r}: without it the log cannot be recovered"
            raise Refused("amqp:precondition-failed", message)
        self._forget(frozenset({snapshot.file_id}))
        self._deleting.append((command.key, snapshot))
        return []

    def _forget(self, file_ids: frozenset[int]) -> None:
        self._log.edit_manifest(lambda manifest: forget_snapshots(manifest, file_ids))

    def _wake(self) -> None:
        if self._lane is None:
            self._lane = self._log.open_lane("ambermq-snapshot", self._write)
        self._lane.wake()

    def _write(self) -> None:
        """Write the file of the first job; the lane calls it."""
        job = self._jobs[0] if self._jobs else None
        if job is None or job.outcome is not None:
            return
        state, job.state = job.state, None
        assert state is not None
        try:
            outcome: int | Exception = self._write_file(state, job.snapshot)
        except Exception as error:  # noqa: BLE001 - whatever it is, it costs this snapshot alone
            # The traceback would hold a reference to the state.
            outcome = error.with_traceback(None)
        self.written_bytes = self.expected_bytes = 0
        job.outcome = outcome
        lists = [words for queue in state.queues.values() for words in queue.waiting_lists]
        long = [words for words in lists if len(words) > _RELEASE_WORDS]
        del state, lists
        self._release(long)

    def _release(self, lists: list[PersistentQueue]) -> None:
        """Release words in steps: if they were consumed meanwhile, freeing millions at once takes milliseconds."""
        assert self._lane is not None
        while lists:
            words = lists.pop()
            while words:
                words = words.pop(_RELEASE_WORDS)[1]
                if self._lane.pause(_PAUSE_S):
                    return

    def _write_file(self, state: State, snapshot: Snapshot) -> int:
        log = self._log
        storage, path = log.storage, temporary_path(log.directory)
        storage.makedirs(snapshots_path(log.directory))
        sweep(storage, log.directory)
        needed_bytes = sum(
            _MESSAGE_BYTES * queue.depth + _TIME_BYTES * (queue.dues.count + queue.expiries.count) + _QUEUE_BYTES
            for queue in state.queues.values()
        )
        self.written_bytes, self.expected_bytes = 0, needed_bytes
        free_bytes = storage.free_bytes(log.directory)
        if free_bytes < needed_bytes:
            raise OSError(errno.ENOSPC, f"about {needed_bytes} bytes are needed, {free_bytes} are free")
        try:
            return write_snapshot(storage, path, state, log_id=log.log_id, end=snapshot.end, throttle=self._throttle)
        except (OSError, WriteCancelled):
            sweep(storage, log.directory)
            raise

    def _throttle(self, written_bytes: int) -> bool:
        assert self._lane is not None
        self.written_bytes += written_bytes
        rate = self._config.snapshot_bytes_per_s
        return self._lane.pause(max(_PAUSE_S, written_bytes / rate if rate else 0))

    def _advance(self, job: _Job, now_us: int, effects: list[Effect]) -> bool:
        """Advance a job by one step; return whether it is done."""
        outcome, placement = job.outcome, job.placement
        if outcome is None:
            return False
        if isinstance(outcome, Exception):
            self._failed(job, outcome, effects)
            return True
        if placement is None:
            self._place(job, outcome)
            return False
        if not placement.is_done:
            return False
        if placement.error is not None:
            self._failed(job, placement.error, effects)
            return True
        if job.waits:
            effects.append(Answered(job.key, self._answer(placement.snapshot), NOW))
        self._prune(now_us)
        return True

    def _answer(self, snapshot: Snapshot) -> dict[str, Any]:
        """Return the answer to a request: the attributes, and how many more snapshots may be requested."""
        return snapshot_attributes(snapshot) | {"room": self._room()}

    def _place(self, job: _Job, size: int) -> None:
        if self._log.durable_end >= job.snapshot.end:
            snapshot = job.snapshot
            sized = Snapshot(
                0, snapshot.name, snapshot.end, snapshot.time_us, snapshot.created_us, size, snapshot.is_automatic
            )
            job.placement = Placement(sized)
            self._log.place_snapshot(job.placement)

    def _prune(self, now_us: int) -> None:
        config = self._config
        file_ids = prunable(
            self._log.manifest,
            now_us=now_us + self.correction_us,
            keep=config.snapshot_keep,
            age_s_max=config.snapshot_age_s_max,
            snapshots_max=config.snapshots_max,
        )
        if file_ids:
            self._forget(file_ids)

    def _failed(self, job: _Job, error: Exception, effects: list[Effect]) -> None:
        message = f"snapshot {job.snapshot.name!r} failed: {error}"
        if not job.waits:
            self.faults.append(message)
            return
        is_full = isinstance(error, OSError) and error.errno in _NO_SPACE
        condition = "amqp:resource-limit-exceeded" if is_full else "amqp:internal-error"
        effects.append(RefusedCommand(job.key, condition, message, NOW))
