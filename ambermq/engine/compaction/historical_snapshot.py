"""The placement of a snapshot of a past moment, which a compaction job has written in its own process.

    requested  a lane reads and checks its file, with pauses
    checked    completed: it gets a file id and a name (snapshot_placement.py), on the thread that edits the manifest
    placed     completed: the answer leaves

Rule: the snapshot ends where a segment begins, below the durable end and not below the horizon. So a fold that starts
with it misses no event. A failure is answered to the client and has no other effect.
"""

from typing import Any, Final, final

from ambermq.engine.commands import NameSnapshot
from ambermq.engine.effects import NOW, Answered, Effect, RefusedCommand
from ambermq.engine.snapshots.files import header_of, read_whole_file
from ambermq.engine.snapshots.snapshotter import snapshot_attributes
from ambermq.log.compaction.job import base_path
from ambermq.log.errors import LogError
from ambermq.log.manifest.manifest import Snapshot
from ambermq.log.manifest.snapshot_placement import Placement
from ambermq.log.storage.worker_threads import Lane
from ambermq.log.write.log import Log

__all__ = ["HistoricalSnapshot"]

_PAUSE_S: Final = 0.001


class _Request:
    """The request for one snapshot."""

    __slots__ = ("job", "key", "name", "outcome", "placement")

    def __init__(self, key: Any, job: str, name: str) -> None:
        self.key = key
        self.job = job
        self.name = name
        self.outcome: Snapshot | Exception | None = None
        self.placement: Placement | None = None


@final
class HistoricalSnapshot:
    """The snapshots of past moments of one log. The lane calls `_check`, the loop everything else."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._request: _Request | None = None
        self._refused: list[Effect] = []
        self._lane: Lane | None = None
        self._now_us = 0

    @property
    def is_busy(self) -> bool:
        """Whether a request is running or an answer is due."""
        return self._request is not None or bool(self._refused)

    def submit(self, command: NameSnapshot) -> None:
        """Start the check of a snapshot, or refuse it."""
        if self._request is not None:
            self._refuse(command.key, f"another snapshot is being named: {self._request.name}")
            return
        self._request = _Request(command.key, command.job, command.name)
        if self._lane is None:
            self._lane = self._log.open_lane("ambermq-naming", self._check)
        self._lane.wake()

    def completed(self, now_us: int) -> list[Effect]:
        """Advance what threads have finished; return the answers."""
        self._now_us = now_us
        request, effects = self._request, self._refused
        self._refused = []
        if request is None or request.outcome is None:
            return effects
        if isinstance(request.outcome, Exception):
            self._refuse(request.key, str(request.outcome))
        elif request.placement is None:
            request.placement = Placement(request.outcome, base_path(self._log.directory, request.job))
            self._log.place_snapshot(request.placement)
            return effects
        elif not request.placement.is_done:
            return effects
        elif request.placement.error is not None:
            self._refuse(request.key, str(request.placement.error))
        else:
            effects.append(Answered(request.key, snapshot_attributes(request.placement.snapshot), NOW))
        self._request = None
        refused, self._refused = self._refused, []
        return effects + refused

    def _refuse(self, key: Any, message: str) -> None:
        self._refused.append(RefusedCommand(key, "amqp:precondition-failed", message, NOW))

    def _check(self) -> None:
        """Check the file of the snapshot; the lane calls it."""
        request = self._request
        if request is None or request.outcome is not None:
            return
        try:
            request.outcome = self._checked(request)
        except Exception as error:  # noqa: BLE001 - whatever it is, it costs this snapshot alone
            request.outcome = error.with_traceback(None)

    def _checked(self, request: _Request) -> Snapshot:
        log, manifest = self._log, self._log.manifest
        path = base_path(log.directory, request.job)
        header, size = header_of(log.storage, path)
        snapshot = Snapshot(0, request.name, header.end, header.time_us, self._now_us, size, is_automatic=False)
        if all(one.base_offset != snapshot.end for one in manifest.sealed):
            raise LogError(f"no segment begins at offset {snapshot.end}, where the snapshot ends")
        if manifest.horizon is not None and snapshot.end < manifest.horizon.offset:
            raise LogError(f"history begins at {manifest.horizon.offset}, the snapshot ends at {snapshot.end}")
        if any(one.name == request.name for one in manifest.snapshots):
            raise LogError(f"there is a snapshot {request.name!r} already")
        read_whole_file(log.storage, path, log_id=log.log_id, snapshot=snapshot, throttle=self._throttle)
        return snapshot

    def _throttle(self, _length: int) -> bool:
        assert self._lane is not None
        return self._lane.pause(_PAUSE_S)
