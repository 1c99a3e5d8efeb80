"""Naming a snapshot of a past moment, which somebody beside the broker has folded and written.

    asked      its file is read and checked, on a lane of its own, with rests
    checked    completed: it gets a file id and a name (snapshot_placement.py), on the thread that edits the manifest
    named      completed: the answer leaves

Rule: its end must be where a batch begins, below what is durable and not below the horizon: whoever folds on from it
must miss nothing. What goes wrong is told to who has asked, and costs nothing else.
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


class _Naming:
    """One that is asked for."""

    __slots__ = ("job", "key", "name", "outcome", "placement")

    def __init__(self, key: Any, job: str, name: str) -> None:
        self.key = key
        self.job = job
        self.name = name
        self.outcome: Snapshot | Exception | None = None
        self.placement: Placement | None = None


@final
class HistoricalSnapshot:
    """The snapshots of the past of one log; the loop calls everything but `_check`, which is the lane's."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._naming: _Naming | None = None
        self._refused: list[Effect] = []
        self._lane: Lane | None = None
        self._now_us = 0

    @property
    def is_busy(self) -> bool:
        """Whether there is anything to go on with."""
        return self._naming is not None or bool(self._refused)

    def submit(self, command: NameSnapshot) -> None:
        """Begin to check what is asked for."""
        if self._naming is not None:
            self._refuse(command.key, f"another snapshot is being named: {self._naming.name}")
            return
        self._naming = _Naming(command.key, command.job, command.name)
        if self._lane is None:
            self._lane = self._log.open_lane("ambermq-naming", self._check)
        self._lane.wake()

    def completed(self, now_us: int) -> list[Effect]:
        """Go on with what threads have finished; return the answers."""
        self._now_us = now_us
        naming, effects = self._naming, self._refused
        self._refused = []
        if naming is None or naming.outcome is None:
            return effects
        if isinstance(naming.outcome, Exception):
            self._refuse(naming.key, str(naming.outcome))
        elif naming.placement is None:
            naming.placement = Placement(naming.outcome, base_path(self._log.directory, naming.job))
            self._log.place_snapshot(naming.placement)
            return effects
        elif not naming.placement.is_done:
            return effects
        elif naming.placement.error is not None:
            self._refuse(naming.key, str(naming.placement.error))
        else:
            effects.append(Answered(naming.key, snapshot_attributes(naming.placement.snapshot), NOW))
        self._naming = None
        refused, self._refused = self._refused, []
        return effects + refused

    def _refuse(self, key: Any, message: str) -> None:
        self._refused.append(RefusedCommand(key, "amqp:precondition-failed", message, NOW))

    def _check(self) -> None:
        """Check the file of the one that is asked for; on its own thread."""
        naming = self._naming
        if naming is None or naming.outcome is not None:
            return
        try:
            naming.outcome = self._checked(naming)
        except Exception as error:  # noqa: BLE001 - whatever it is, it costs this snapshot alone
            naming.outcome = error.with_traceback(None)

    def _checked(self, naming: _Naming) -> Snapshot:
        log, manifest = self._log, self._log.manifest
        path = base_path(log.directory, naming.job)
        header, size = header_of(log.storage, path)
        snapshot = Snapshot(0, naming.name, header.end, header.time_us, self._now_us, size, is_automatic=False)
        if all(one.base_offset != snapshot.end for one in manifest.sealed):
            raise LogError(f"no segment begins at {snapshot.end}: a snapshot of the past ends where one does")
        if manifest.horizon is not None and snapshot.end < manifest.horizon.offset:
            raise LogError(f"history begins at {manifest.horizon.offset}, the snapshot ends at {snapshot.end}")
        if any(one.name == naming.name for one in manifest.snapshots):
            raise LogError(f"there is a snapshot {naming.name!r} already")
        read_whole_file(log.storage, path, log_id=log.log_id, snapshot=snapshot, throttle=self._throttle)
        return snapshot

    def _throttle(self, _length: int) -> bool:
        assert self._lane is not None
        return self._lane.pause(_PAUSE_S)
