"""Snapshots of a log as commands read them: found by name, loaded, and what to do about one that cannot be."""

from ambermq.engine.model.state import State
from ambermq.engine.snapshots.files import load_snapshot
from ambermq.log.errors import DamageError
from ambermq.log.manifest.manifest import Manifest, Snapshot
from ambermq.log.read.log_reader import LogReader
from ambermq.tools.terminal.errors import ToolError
from ambermq.tools.terminal.exit_codes import ExitCode

__all__ = ["SNAPSHOT_ADVICE", "snapshot_named", "snapshot_state"]

SNAPSHOT_ADVICE = "a start uses the one before it; delete it and take another"


def snapshot_named(manifest: Manifest, name: str, directory: str) -> Snapshot:
    """Return the snapshot of a name; ToolError where there is none."""
    for one in manifest.snapshots:
        if one.name == name:
            return one
    known = ", ".join(one.name for one in manifest.snapshots[-5:]) or "none"
    raise ToolError(
        f"no snapshot {name!r}",
        where=directory,
        found=f"there are {len(manifest.snapshots)}, the last of them {known}",
        advice="ambermq snapshot list shows all",
        code=ExitCode.NOT_FOUND,
    )


def snapshot_state(reader: LogReader, one: Snapshot) -> State:
    """Return what a snapshot holds; ToolError where it is damaged, for repairing the log mends none, ForeignError."""
    try:
        return load_snapshot(reader.storage, reader.directory, reader.manifest, one)
    except DamageError as fault:
        raise ToolError(str(fault), advice=SNAPSHOT_ADVICE, code=ExitCode.DAMAGED) from fault
