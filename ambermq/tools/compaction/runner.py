"""The interface between a compaction and the runner of its tasks: this process, other processes, or Spark.

    count(tasks)     CountTask -> SegmentCount     each sealed segment below the horizon
    rewrite(tasks)   GroupTask -> RewrittenSegment each group that is worth it

Rule 1. Tasks and results are values of rewrite_tasks.py. Results come in any order, each as soon as its task ends.
Rule 2. A task may run twice, or end half way: each run writes a file with a name of its own, and only the file in the
result counts.
Rule 3. An exception of a task (DamageError, ForeignError, OSError) ends the compaction unchanged.
"""

from collections.abc import Iterator, Sequence
from typing import Protocol

from ambermq.log.compaction.rewrite_tasks import CountTask, GroupTask, RewrittenSegment, SegmentCount

__all__ = ["Runner"]


class Runner(Protocol):
    """The runner of the tasks of one compaction."""

    def count(self, tasks: Sequence[CountTask]) -> Iterator[SegmentCount]:
        """Yield the count of kept records of each segment."""

    def rewrite(self, tasks: Sequence[GroupTask]) -> Iterator[RewrittenSegment]:
        """Write each group as one new segment, and yield the result."""

    def close(self) -> None:
        """Close the processes or the session of the runner."""
