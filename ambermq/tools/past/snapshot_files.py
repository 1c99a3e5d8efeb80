"""Snapshots for commands: find one by name, load it, and advise what to do about a damaged one."""

from ambermq.engine.model.state import State
from ambermq.engine.snapshots.files import load_snapshot
from ambermq.log.errors import DamageError
from ambermq.log.manifest.manifest import Manifest, Snapshot
from ambermq.log.read.log_reader import LogReader
from ambermq.tools.terminal.errors import ToolError
from ambermq.tools.terminal.exit_codes import ExitCode

__all__ = ["SNAPSHOT_ADVICE", "snapshot_named", "snapshot_state"]

SNAPSHOT_ADVICE = "delete the snapshot and take another; a start uses the one before it"


def snapshot_named(manifest: Manifest, name: str, directory: str) -> Snapshot:
    """Return the snapshot of a name; raise ToolError if there is none."""
    for one in manifest.snapshots:
        if one.name == name:
            return one
    known = ", ".join(one.name for one in manifest.snapshots[-5:]) or "none"
    raise ToolError(
        f"no snapshot {name!r}",
        where=directory,
        found=f"{len(manifest.snapshots)} snapshots, the newest: {known}",
        advice="list all with `ambermq snapshot list`",
        code=ExitCode.NOT_FOUND,
    )


def snapshot_state(reader: LogReader, one: Snapshot) -> State:
    """Return the state in a snapshot; raise ForeignError, or ToolError if it is damaged.

    A repair of the log does not mend a snapshot, so the advice is another.
    """
    try:
        return load_snapshot(reader.storage, reader.directory, reader.manifest, one)
    except DamageError as fault:
        raise ToolError(str(fault), advice=SNAPSHOT_ADVICE, code=ExitCode.DAMAGED) from fault
