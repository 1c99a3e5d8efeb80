"""Commands on compactions: those of a job concern files too (engine/compaction), `decide` gets the record alone."""

from typing import Any, final

from msgspec import Struct

__all__ = ["CommitCompaction", "CompactionCommand", "NameSnapshot", "RecordCompaction"]


@final
class RecordCompaction(Struct):
    """Record a committed compaction in the log. The answer leaves when the record is durable."""

    key: Any
    horizon: int
    segments: tuple[int, int]
    """The counts of replaced and of new segments."""
    records: tuple[int, int]
    """The counts of records before and after."""
    sizes: tuple[int, int]
    """The bytes of the segments before and after."""


@final
class NameSnapshot(Struct):
    """Add the snapshot of a past moment, which a job has written, to the log. The answer has its attributes."""

    key: Any
    job: str
    """The name of the job's directory."""
    name: str


@final
class CommitCompaction(Struct):
    """Replace segments by those that a compaction job has written (engine/compaction/commit.py)."""

    key: Any
    job: str
    """The name of the job's directory."""


CompactionCommand = CommitCompaction | NameSnapshot
"""The commands of a compaction job."""
