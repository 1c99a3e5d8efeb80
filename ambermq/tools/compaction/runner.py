"""The seam between a compaction and who runs its tasks: this process, others beside it, or Spark.

    count(tasks)     CountTask -> SegmentCount     each sealed segment below the horizon
    rewrite(tasks)   GroupTask -> Rewritten        each group that is worth it

Rule 1. Tasks and answers are values of rewrite_tasks.py; answers come in any order, each as soon as it is there.
Rule 2. A task may run twice, or be given up half way: its file has a name of its own, and only the one whose answer is
taken counts.
Rule 3. What a task raises (DamageError, ForeignError, OSError) ends the compaction as it is.
"""

from collections.abc import Iterator, Sequence
from typing import Protocol

from ambermq.log.compaction.rewrite_tasks import CountTask, GroupTask, RewrittenSegment, SegmentCount

__all__ = ["Runner"]


class Runner(Protocol):
    """Whoever runs the tasks of one compaction."""

    def count(self, tasks: Sequence[CountTask]) -> Iterator[SegmentCount]:
        """Count what of each segment is kept."""

    def rewrite(self, tasks: Sequence[GroupTask]) -> Iterator[RewrittenSegment]:
        """Write each group as one new segment."""

    def close(self) -> None:
        """Let go of what the tasks ran on."""
