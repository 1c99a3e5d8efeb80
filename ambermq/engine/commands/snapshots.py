"""Commands on snapshots (engine/snapshots/snapshotter.py): they concern files, so `decide` does not get them."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, final

from msgspec import Struct

__all__ = ["DeleteSnapshot", "InspectSnapshots", "SnapshotCommand", "TakeSnapshot"]


@final
class TakeSnapshot(Struct):
    """Take a snapshot of the state at the end of this tick. The answer has its attributes."""

    key: Any
    name: str = ""
    """The name; empty: the broker chooses one."""
    waits: bool = True
    """True: the answer leaves when the snapshot is durable. False: when it is taken, before it is written."""
    seals: bool = False
    """Seal the active segment if the spare is ready, so that whole segments are below the snapshot."""


@final
class DeleteSnapshot(Struct):
    """Delete a snapshot. The answer has its attributes, or is None if no snapshot has the name."""

    key: Any
    name: str


@final
class InspectSnapshots(Struct):
    """Answer with the result of `read` on the attributes of all snapshots, in order of their ends.

    The second argument of `read` is the number of snapshots that may still be requested.
    """

    key: Any
    read: Callable[[Sequence[Mapping[str, Any]], int], Any]


SnapshotCommand = TakeSnapshot | DeleteSnapshot | InspectSnapshots
"""The commands on snapshots."""
