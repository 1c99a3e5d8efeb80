"""Taking snapshots beside the running broker: one reference at the end of a tick, then a slow writer on its own lane.

    asked or due      step: the tick is written, so State is what lies below the log's end: both are held
    writing           a lane of its own turns State into a file, a little at a time, and syncs it
    written           completed: once the log is durable up to the snapshot's end, the file is placed
    named             completed: the answer leaves, and what is too many or too old goes

Rule 1. One is written at a time; others stand in a bounded line, each with the state of its own moment.
Rule 2. What goes wrong with a snapshot is told and costs that snapshot, never the broker.
Rule 3. Threads share a `_Taking`: the loop hands it over whole, and its `outcome` is set last.
Rule 4. A broker that stops drops what it has not finished; a file that is left behind goes at the next start.
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
"""After each block at least: the loop waits for the interpreter no longer than a block takes."""
_LET_GO_WORDS: Final = 8 * 1024
_MESSAGE_BYTES: Final = 9
_QUEUE_BYTES: Final = 1024
_NO_SPACE: Final = frozenset({errno.ENOSPC, errno.EDQUOT})


def snapshot_attributes(snapshot: Snapshot) -> dict[str, Any]:
    """Return what is told of a snapshot: `end` an offset, times in microseconds, `bytes` those of its file."""
    return {
        "name": snapshot.name,
        "end": snapshot.end,
        "time_us": snapshot.time_us,
        "created_us": snapshot.created_us,
        "bytes": snapshot.size,
        "is_automatic": snapshot.is_automatic,
    }


class _Taking:
    """A snapshot that is held, being written, or being placed."""

    __slots__ = ("key", "outcome", "placement", "snapshot", "state", "waits")

    def __init__(self, key: Any, snapshot: Snapshot, state: State, *, waits: bool) -> None:
        self.key = key
        """None where nobody waits."""
        self.snapshot = snapshot
        self.state: State | None = state
        """Taken by the writer, who may be the last to hold most of it."""
        self.waits = waits
        self.outcome: int | Exception | None = None
        """The file's size, or what went wrong."""
        self.placement: Placement | None = None

    @property
    def is_over(self) -> bool:
        """Whether it is named, or cannot be."""
        return self.placement is not None and self.placement.is_done


@final
class Snapshotter:
    """The snapshots of one log; the loop calls everything but `_write`, which is the lane's."""

    def __init__(self, log: Log, config: EngineConfig) -> None:
        self.faults: list[str] = []
        """What went wrong with snapshots that nobody waits for, for the server to log."""
        self._log = log
        self._config = config
        self._asked: list[SnapshotCommand] = []
        self._line: deque[_Taking] = deque()
        self._deleting: list[tuple[Any, Snapshot]] = []
        self._lane: Lane | None = None
        self._due_bytes = self._due_us = _NEVER
        self._not_before_us = 0
        self._is_crowded_told = False

    def start(self, now_us: int, *, logged_bytes: int) -> None:
        """Take some without being asked from now on; `logged_bytes` were logged since the last one."""
        self._rearm(now_us, logged_bytes=logged_bytes)

    def submit(self, command: SnapshotCommand) -> None:
        """Take a command, to be looked at when the tick ends."""
        self._asked.append(command)

    def is_due(self, now_us: int) -> bool:
        """Whether the tick has to be written, for `step`."""
        if self._asked:
            return True
        is_due = self._log.written_bytes >= self._due_bytes or now_us >= self._due_us
        return is_due and now_us >= self._not_before_us and not self._line

    @property
    def is_busy(self) -> bool:
        """Whether there is anything to go on with."""
        return bool(self._line or self._deleting)

    def step(self, state: State, now_us: int) -> list[Effect]:
        """Do what is asked or due: all of `state` is written, and the log ends with it. Return the answers."""
        effects: list[Effect] = []
        if not self._asked:
            self._take_by_itself(state, now_us)
        asked, self._asked = self._asked, []
        for command in asked:
            try:
                effects += self._obey(command, state, now_us)
            except Refused as refusal:
                effects.append(RefusedCommand(command.key, refusal.condition, refusal.description))
        return effects

    def completed(self, now_us: int) -> list[Effect]:
        """Go on with what threads have finished; return the answers that may leave now."""
        effects: list[Effect] = []
        while self._line and self._go_on(self._line[0], now_us, effects):
            self._line.popleft()
            if self._line:
                self._wake()
        if self._deleting:
            named = {one.file_id for one in self._log.manifest.snapshots}
            gone = [one for one in self._deleting if one[1].file_id not in named]
            self._deleting = [one for one in self._deleting if one[1].file_id in named]
            effects += [Answered(key, snapshot_attributes(snapshot), NOW) for key, snapshot in gone]
        return effects

    def _obey(self, command: SnapshotCommand, state: State, now_us: int) -> Sequence[Effect]:
        if type(command) is TakeSnapshot:
            return self._take(command, state, now_us)
        if type(command) is DeleteSnapshot:
            return self._delete(command)
        assert type(command) is InspectSnapshots
        rows = [snapshot_attributes(one) for one in self._log.manifest.snapshots]
        return [Answered(command.key, command.read(rows, self._room()), NOW)]

    def _take(self, command: TakeSnapshot, state: State, now_us: int) -> list[Effect]:
        if len(self._line) > self._config.snapshots_waiting_max:
            raise Refused("amqp:resource-limit-exceeded", f"{len(self._line)} snapshots are being taken already")
        if not self._room():
            raise Refused("amqp:resource-limit-exceeded", f"there are {self._config.snapshots_max} snapshots already")
        snapshot = self._hold(command, state, now_us)
        if command.seals:
            self._log.seal_active(now_us)
        return [] if command.waits else [Answered(command.key, self._told(snapshot))]

    def _take_by_itself(self, state: State, now_us: int) -> None:
        snapshots = self._log.manifest.snapshots
        is_news = not snapshots or snapshots[-1].end < self._log.log_end
        if is_news and self._room():
            self._hold(None, state, now_us)
        elif is_news:
            self._tell_crowded()
        self._rearm(now_us)

    def _room(self) -> int:
        """Return how many more may be asked for; the broker's own make room for them."""
        coming = sum(not taking.snapshot.is_automatic and not taking.is_over for taking in self._line)
        return max(0, self._config.snapshots_max - lasting(self._log.manifest) - coming)

    def _tell_crowded(self) -> None:
        """Say that none is taken any more, until one was again."""
        if not self._is_crowded_told:
            self._is_crowded_told = True
            self.faults.append(
                f"there are {self._config.snapshots_max} that somebody asked for (snapshots_max), so the broker takes "
                f"none by itself, and a start takes ever longer: delete some"
            )

    def _hold(self, command: TakeSnapshot | None, state: State, now_us: int) -> Snapshot:
        """Take the reference, and put it in line."""
        self._is_crowded_told = False
        end = self._log.log_end
        name = self._free_name(f"auto-{end}") if command is None else self._checked_name(command.name, end)
        snapshot = Snapshot(0, name, end, state.time_us, now_us, 0, is_automatic=command is None)
        waits = command is not None and command.waits
        self._line.append(_Taking(command.key if command else None, snapshot, state, waits=waits))
        if len(self._line) == 1:
            self._wake()
        # It is named once it is durable up to here, whoever else waits for that.
        self._log.request_sync()
        self._rearm(now_us)
        return snapshot

    def _rearm(self, now_us: int, *, logged_bytes: int = 0) -> None:
        config = self._config
        if config.snapshot_bytes:
            self._due_bytes = self._log.written_bytes + max(0, config.snapshot_bytes - logged_bytes)
        if config.snapshot_interval_s:
            self._due_us = now_us + config.snapshot_interval_s * 1_000_000
        self._not_before_us = now_us + config.snapshot_pause_s * 1_000_000

    def _names(self) -> set[str]:
        named = {one.name for one in self._log.manifest.snapshots}
        return named | {taking.snapshot.name for taking in self._line}

    def _checked_name(self, name: str, end: int) -> str:
        if not name:
            return self._free_name(f"snapshot-{end}")
        bytes_max = self._config.name_bytes_max
        if not name.isprintable() or "/" in name or len(name.encode(errors="replace")) > bytes_max:
            message = f"a snapshot's name is 1 to {bytes_max} bytes of printable text without '/', found {name!r:.80}"
            raise Refused("amqp:invalid-field", message)
        if name in self._names():
            raise Refused("amqp:precondition-failed", f"there is a snapshot {name!r} already")
        return name

    def _free_name(self, name: str) -> str:
        taken, number, free = self._names(), 1, name
        while free in taken:
            number += 1
            free = f"{name}-{number}"
        return free

    def _delete(self, command: DeleteSnapshot) -> list[Effect]:
        manifest = self._log.manifest
        snapshot = next((one for one in manifest.snapshots if one.name == command.name), None)
        if snapshot is None:
            return [Answered(command.key, None, NOW)]
        if snapshot == base_of(manifest):
            message = f"history begins with the snapshot {snapshot.name!r}: nothing could be recovered without it"
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
        """Write the file of the first in line; on its own thread."""
        taking = self._line[0] if self._line else None
        if taking is None or taking.outcome is not None:
            return
        state, taking.state = taking.state, None
        assert state is not None
        try:
            taking.outcome = self._write_file(state, taking.snapshot)
        except Exception as error:  # noqa: BLE001 - whatever it is, it costs this snapshot alone
            # Without its traceback, which would keep the state.
            taking.outcome = error.with_traceback(None)
        both = [words for queue in state.queues.values() for words in (queue.ready, queue.returned)]
        long = [words for words in both if len(words) > _LET_GO_WORDS]
        del state, both
        self._let_go(long)

    def _let_go(self, lists: list[PersistentQueue]) -> None:
        """Drop words little by little: where they were consumed meanwhile, freeing millions takes milliseconds."""
        assert self._lane is not None
        while lists:
            words = lists.pop()
            while words:
                words = words.pop(_LET_GO_WORDS)[1]
                if self._lane.pause(_PAUSE_S):
                    return

    def _write_file(self, state: State, snapshot: Snapshot) -> int:
        log = self._log
        storage, path = log.storage, temporary_path(log.directory)
        storage.makedirs(snapshots_path(log.directory))
        sweep(storage, log.directory)
        needed_bytes = sum(_MESSAGE_BYTES * queue.depth + _QUEUE_BYTES for queue in state.queues.values())
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
        rate = self._config.snapshot_bytes_per_s
        return self._lane.pause(max(_PAUSE_S, written_bytes / rate if rate else 0))

    def _go_on(self, taking: _Taking, now_us: int, effects: list[Effect]) -> bool:
        """Bring one a step further; tell whether it is over."""
        outcome, placement = taking.outcome, taking.placement
        if outcome is None:
            return False
        if isinstance(outcome, Exception):
            self._failed(taking, outcome, effects)
            return True
        if placement is None:
            self._place(taking, outcome)
            return False
        if not placement.is_done:
            return False
        if placement.error is not None:
            self._failed(taking, placement.error, effects)
            return True
        if taking.waits:
            effects.append(Answered(taking.key, self._told(placement.snapshot), NOW))
        self._prune(now_us)
        return True

    def _told(self, snapshot: Snapshot) -> dict[str, Any]:
        """Return what is answered to who has asked for a snapshot: how many more he may ask for as well."""
        return snapshot_attributes(snapshot) | {"room": self._room()}

    def _place(self, taking: _Taking, size: int) -> None:
        if self._log.durable_end >= taking.snapshot.end:
            snapshot = taking.snapshot
            sized = Snapshot(
                0, snapshot.name, snapshot.end, snapshot.time_us, snapshot.created_us, size, snapshot.is_automatic
            )
            taking.placement = Placement(sized)
            self._log.place_snapshot(taking.placement)

    def _prune(self, now_us: int) -> None:
        config = self._config
        file_ids = prunable(
            self._log.manifest,
            now_us=now_us,
            keep=config.snapshot_keep,
            age_s_max=config.snapshot_age_s_max,
            snapshots_max=config.snapshots_max,
        )
        if file_ids:
            self._forget(file_ids)

    def _failed(self, taking: _Taking, error: Exception, effects: list[Effect]) -> None:
        message = f"the snapshot {taking.snapshot.name!r} could not be written: {error}"
        if not taking.waits:
            self.faults.append(message)
            return
        is_full = isinstance(error, OSError) and error.errno in _NO_SPACE
        condition = "amqp:resource-limit-exceeded" if is_full else "amqp:internal-error"
        effects.append(RefusedCommand(taking.key, condition, message, NOW))
