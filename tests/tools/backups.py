"""Logs with a snapshot, to make backups of, and what a restored one is held against."""

from functools import partial
from pathlib import Path

from ambermq.engine.compaction.live_records import kept_offsets
from ambermq.engine.loop.recovery import fold_log
from ambermq.engine.model.state import State
from ambermq.engine.snapshots.files import write_snapshot
from ambermq.log.manifest.manifest import Snapshot, commit, load, snapshots_path
from ambermq.log.manifest.snapshot_placement import place, temporary_path
from ambermq.log.read.log_reader import open_reader
from ambermq.log.recovery.recovery import Recovery
from ambermq.log.storage.disk import DiskStorage
from ambermq.tools.backup.export import export_backup
from ambermq.tools.backup.format import Table
from tests.engine.lived import LIVED, Lived

__all__ = ["bodies_of", "folded", "lived_with_snapshot", "take_snapshot", "taken"]

NOW_US = 1_700_000_100_000_000


def folded(directory: str) -> tuple[State, int]:
    """Return what a recovery of a log at rest would begin with, and where the log ends."""
    recovery = Recovery.open(DiskStorage(), directory, LIVED, NOW_US)
    try:
        return fold_log(recovery), recovery.valid_end
    finally:
        recovery.close()


def take_snapshot(directory: str, name: str) -> State:
    """Take a snapshot at the end of a log at rest; return its state."""
    storage = DiskStorage()
    state, end = folded(directory)
    manifest = load(storage, directory)
    assert manifest is not None
    storage.makedirs(snapshots_path(directory))
    size = write_snapshot(storage, temporary_path(directory), state, log_id=manifest.log_id, end=end)
    snapshot = Snapshot(0, name, end, state.time_us, NOW_US, size, is_automatic=False)
    place(storage, directory, snapshot, partial(commit, storage, directory))
    return state


def lived_with_snapshot(directory: Path, seed: int, *, steps: int = 60) -> State:
    """Live, take the snapshot `one`, live on and end; return the state of the snapshot."""
    lived = Lived(directory, seed)
    lived.live(steps)
    lived.settle_down()
    lived.end()
    state = take_snapshot(str(directory), "one")
    lived.start()
    lived.live(steps // 2)
    lived.end(cleanly=seed % 2 == 0)
    return state


def bodies_of(directory: str, state: State) -> dict[int, bytes]:
    """Return what is stored at each offset that holds a live message, or a chunk of one."""
    bodies = {}
    with open_reader(directory, LIVED) as reader:
        for offset in kept_offsets(state):
            found = reader.find(offset)
            assert found is not None
            batch, record = found
            bodies[offset] = bytes(batch.body(record)) + record.meta
    return bodies


def taken(directory: Path, seed: int, *, as_directory: bool = False) -> tuple[str, State, Table]:
    """Return the path of a backup of a log that lived in `directory`/source, its state and its table."""
    state = lived_with_snapshot(directory / "source", seed)
    path = str(directory / "backup")
    return path, state, export_backup(str(directory / "source"), "one", path, as_directory=as_directory)
