"""The sorted ids of queues, muxers, attachments and subscriptions, cached: a page of a listing sorts nothing.

Rule 1. A map of State is immutable: the same object has the same ids, so it is sorted once.
Rule 2. The cache has one order for each kind, and the map that it belongs to.
"""

from array import array
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any, final

from ambermq.engine.model.muxer import Muxer
from ambermq.engine.model.state import State
from ambermq.snapshot.persistent_map import PersistentMap

__all__ = ["SortedIds"]


@final
class _Order:
    """Sorted ids, and the map that they belong to."""

    __slots__ = ("_table", "ids")

    def __init__(self) -> None:
        self._table: PersistentMap[Any, Any] | None = None
        self.ids: Sequence[int] = ()

    def is_of(self, table: "PersistentMap[Any, Any]") -> bool:
        """Return whether the ids belong to this map, and note the map for the next call."""
        is_same = self._table is table
        self._table = table
        return is_same


@final
class SortedIds:
    """The sorted ids of one virtual host."""

    __slots__ = ("_attachments", "_ends", "_muxers", "_queues", "_subscriptions")

    def __init__(self) -> None:
        self._queues, self._subscriptions = _Order(), _Order()
        self._muxers, self._attachments, self._ends = _Order(), _Order(), _Order()

    def queues(self, state: State) -> Sequence[int]:
        """Return the ids of all queues. Their names are compared, since publishing does not change them."""
        if not self._queues.is_of(state.queue_names) or len(self._queues.ids) != len(state.queues):
            self._queues.ids = _sorted(state.queues)
        return self._queues.ids

    def subscriptions(self, state: State) -> Sequence[int]:
        """Return the ids of all subscriptions, which are the ids of their queues."""
        if not self._subscriptions.is_of(state.subscriptions):
            self._subscriptions.ids = _sorted(state.subscriptions)
        return self._subscriptions.ids

    def muxers(self, state: State) -> Sequence[int]:
        """Return the ids of all muxers."""
        if not self._muxers.is_of(state.muxers):
            self._muxers.ids = _sorted(state.muxers)
        return self._muxers.ids

    def attachments(self, muxer: Muxer) -> Sequence[int]:
        """Return the ids of a muxer's attachments."""
        if not self._attachments.is_of(muxer.attachments):
            self._attachments.ids = _sorted(muxer.attachments)
        return self._attachments.ids

    def attachment_count(self, state: State) -> int:
        """Return the number of attachments of all muxers."""
        ends = self._ends_of(state)
        return ends[-1] if ends else 0

    def places(self, state: State, offset: int) -> Iterator[tuple[Muxer, Sequence[int]]]:
        """Yield each muxer with the ids of its attachments, from the attachment number `offset` of all on."""
        muxers, ends = self.muxers(state), self._ends_of(state)
        first = bisect_right(ends, offset)
        begin = offset - ends[first - 1] if first else offset
        for place in range(first, len(muxers)):
            muxer = state.muxers[muxers[place]]
            yield muxer, self.attachments(muxer)[begin:]
            begin = 0

    def _ends_of(self, state: State) -> Sequence[int]:
        """Return the running total of attachments: for each muxer those up to and including it."""
        if not self._ends.is_of(state.muxers):
            counts = (len(state.muxers[one].attachments) for one in self.muxers(state))
            self._ends.ids = array("Q", accumulate(counts))
        return self._ends.ids


def _sorted(table: "PersistentMap[int, Any]") -> Sequence[int]:
    return array("Q", sorted(table.keys()))
