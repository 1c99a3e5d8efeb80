"""The number of messages that a queue has of each group: waiting or acquired.

The last message of a group ends its binding to a consumer (dispatch/group_lines.py). The counts are derived: the
columns of each message hold its group.
"""

from collections.abc import Iterable
from typing import Final

from ambermq.engine.entries.group import group_of
from ambermq.snapshot.persistent_map import PersistentMap

__all__ = ["NO_GROUPS", "Groups", "with_codes", "without_codes"]

Groups = PersistentMap[int, int]
"""The number of messages by group; no group without a message."""
NO_GROUPS: Final[Groups] = PersistentMap()


def with_codes(groups: Groups, codes: Iterable[int]) -> Groups:
    """Return groups with a message more for each code; 0 is none."""
    added = [group_of(code) for code in codes if code]
    if not added:
        return groups
    counts = groups.mutate()
    for group in added:
        counts[group] = counts.get(group, 0) + 1
    return counts.finish()


def without_codes(groups: Groups, codes: Iterable[int]) -> Groups:
    """Return groups with a message less for each code; 0 is none."""
    removed = [group_of(code) for code in codes if code]
    if not removed:
        return groups
    counts = groups.mutate()
    for group in removed:
        left = counts.pop(group, 0) - 1
        if left > 0:
            counts[group] = left
    return counts.finish()
