"""The commit of a compaction in the running broker: check, adopt, record.

    requested   a lane reads the job's table and checks its files, with pauses
    checked     completed: the log adopts the files (log/compaction/adoption.py), on the thread that edits the manifest
    adopted     completed: bodies are now read from the new segments, and the event Compacted is decided
    durable     the answer leaves

Rule 1. One compaction is committed at a time. Another request is refused.
Rule 2. A failure is answered to the client and ends only the compaction, never the broker.
Rule 3. At least two snapshots are read again before the commit, because the removed events cannot be restored.
Rule 4. Threads share a `_Commit`; the lane sets its `outcome` last.
"""

from typing import Any, Final, final

from ambermq.engine.commands import CompactionCommand, NameSnapshot, RecordCompaction
from ambermq.engine.compaction.historical_snapshot import HistoricalSnapshot
from ambermq.engine.effects import NOW, Effect, RefusedCommand
from ambermq.engine.snapshots.files import read_whole
from ambermq.log.compaction.adoption import Adoption, check_segments
from ambermq.log.compaction.job import CompactionJob, read_table
from ambermq.log.errors import LogError
from ambermq.log.manifest.manifest import Manifest
from ambermq.log.storage.worker_threads import Lane
from ambermq.log.write.log import Log

__all__ = ["Compactor"]

_PAUSE_S: Final = 0.001
_SNAPSHOTS_MIN: Final = 2


class _Commit:
    """The running commit of a compaction."""

    __slots__ = ("adoption", "job", "key", "outcome")

    def __init__(self, key: Any, job: str) -> None:
        self.key = key
        self.job = job
        self.outcome: CompactionJob | Exception | None = None
        """The checked job, or the error of the check."""
        self.adoption: Adoption | None = None


@final
class Compactor:
    """The compactions of one log. The lane calls `_check`, the loop everything else."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._commit: _Commit | None = None
        self._refused: list[Effect] = []
        self._lane: Lane | None = None
        self._historical_snapshots = HistoricalSnapshot(log)

    def submit(self, command: CompactionCommand) -> None:
        """Start the check of a command, or refuse it."""
        if isinstance(command, NameSnapshot):
            self._historical_snapshots.submit(command)
        elif self._commit is not None:
            self._refuse(command.key, f"another compaction is being committed: job {self._commit.job}")
        else:
            self._commit = _Commit(command.key, command.job)
            if self._lane is None:
                self._lane = self._log.open_lane("ambermq-compaction", self._check)
            self._lane.wake()

    @property
    def is_busy(self) -> bool:
        """Whether a commit is running or an answer is due."""
        return self._commit is not None or bool(self._refused) or self._historical_snapshots.is_busy

    def completed(self, now_us: int) -> tuple[list[Effect], RecordCompaction | None]:
        """Advance what threads have finished; return the answers, and the command to decide next or None."""
        record = self._advance()
        refused, self._refused = self._refused, []
        return refused + (
            self._historical_snapshots.completed(now_us) if self._historical_snapshots.is_busy else []
        ), record

    def _advance(self) -> RecordCompaction | None:
        commit = self._commit
        if commit is None or commit.outcome is None:
            return None
        if isinstance(commit.outcome, Exception):
            self._failed(commit, commit.outcome)
            return None
        if commit.adoption is None:
            commit.adoption = Adoption(commit.job, commit.outcome)
            self._log.adopt(commit.adoption)
            return None
        adoption = commit.adoption
        if not adoption.is_done:
            return None
        if adoption.error is not None:
            self._failed(commit, adoption.error)
            return None
        self._commit = None
        self._log.switch_segments(adoption)
        return _record(commit, adoption)

    def _failed(self, commit: _Commit, error: Exception) -> None:
        self._commit = None
        self._refuse(commit.key, f"compaction failed, the log is as it was: {error}")

    def _refuse(self, key: Any, message: str) -> None:
        self._refused.append(RefusedCommand(key, "amqp:precondition-failed", message, NOW))

    def _check(self) -> None:
        """Check the files of the commit; the lane calls it."""
        commit = self._commit
        if commit is None or commit.outcome is not None:
            return
        try:
            commit.outcome = self._checked(commit.job)
        except Exception as error:  # noqa: BLE001 - whatever it is, it costs this compaction alone
            commit.outcome = error.with_traceback(None)

    def _checked(self, job: str) -> CompactionJob:
        log = self._log
        proposal = read_table(log.storage, log.directory, job)
        self._check_snapshots(log.manifest, proposal.horizon.offset)
        is_checked = check_segments(
            log.storage,
            log.directory,
            job,
            proposal,
            batch_bytes_max=log.config.batch_bytes_max,
            throttle=self._throttle,
        )
        if not is_checked:
            raise LogError("the broker is stopping")
        return proposal

    def _check_snapshots(self, manifest: Manifest, horizon: int) -> None:
        """Read the base and the newest snapshot again, before the events below them are removed."""
        snapshots = [one for one in manifest.snapshots if one.end >= horizon]
        if len(snapshots) < _SNAPSHOTS_MIN or snapshots[0].end != horizon:
            raise LogError(f"two snapshots are needed, the first one at offset {horizon}: found {len(snapshots)}")
        for one in (snapshots[0], snapshots[-1]):
            read_whole(self._log.storage, self._log.directory, manifest, one, self._throttle)

    def _throttle(self, _length: int) -> bool:
        assert self._lane is not None
        return self._lane.pause(_PAUSE_S)


def _record(commit: _Commit, adoption: Adoption) -> RecordCompaction:
    proposal = adoption.table
    return RecordCompaction(
        commit.key,
        horizon=proposal.horizon.offset,
        segments=(len(adoption.inputs), len(adoption.segments)),
        records=(proposal.records_before, proposal.records_after),
        sizes=(sum(one.size for one in adoption.inputs), sum(one.size for one in adoption.segments)),
    )
