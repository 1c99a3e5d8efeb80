"""The sorted ids of queues, muxers, attachments and subscriptions, cached: a page of a listing sorts nothing.

Rule 1. A map of State is immutable: the same object has the same ids, so it is sorted once.
Rule 2. The cache has one order for each kind, and the map that it belongs to. Attachments have the orders of two
        muxers: a page has rows of at most two large ones.
Rule 3. Work on a large map has a limit of time in each tick. If it is over, a call raises MatchUnfinished, and the same
        call in the next tick goes on. No other command is decided in between, so the map is the same then.
"""

from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Final, final

from ambermq.engine.address import muxer_address, queue_address, topic_address
from ambermq.engine.model.muxer import Muxer
from ambermq.engine.model.state import State
from ambermq.engine.time_budget import MatchUnfinished, TimeBudget
from ambermq.snapshot.persistent_map import PersistentMap

__all__ = ["Orders", "SortedIds", "VisibleIds"]

_RUN: Final = 2048
"""The ids that are read or sorted between two checks of the time; a smaller map is sorted at once."""
_LARGE_MAX: Final = 2


@final
class _Sort:
    """A sort of the keys of one map, in steps of about _RUN keys.

    First it sorts runs. Then it merges them, from one pivot to the next: each run has about the same share of the keys
    between two pivots, because the order of a map is that of hashes.
    """

    __slots__ = ("_keys", "_pivots", "_places", "_runs", "ids")

    def __init__(self, keys: Iterable[int]) -> None:
        self.ids = array("Q")
        self._keys = iter(keys)
        self._runs: list[list[int]] = []
        self._places: list[int] = []
        self._pivots: Iterator[int] = iter(())

    def go_on(self, budget: TimeBudget) -> None:
        """Sort the rest. Raises MatchUnfinished if the time is over."""
        while run := sorted(islice(self._keys, _RUN)):
            self._runs.append(run)
            self._places.append(0)
            budget.check()
        if not self.ids and self._runs:
            step = max(len(self._runs[0]) // len(self._runs), 1)
            highest = max(run[-1] for run in self._runs)
            self._pivots = iter([*self._runs[0][step::step], highest])
        for pivot in self._pivots:
            self.ids.extend(self._take_up_to(pivot))
            budget.check()

    def _take_up_to(self, pivot: int) -> list[int]:
        """Return the next keys of all runs up to a pivot, sorted."""
        keys: list[int] = []
        for index, run in enumerate(self._runs):
            begin = self._places[index]
            end = self._places[index] = bisect_right(run, pivot, begin)
            keys += run[begin:end]
        keys.sort()
        return keys


@final
class _Order:
    """Sorted ids, and the map that they belong to."""

    __slots__ = ("_sort", "_table", "ids")

    def __init__(self) -> None:
        self._table: PersistentMap[Any, Any] | None = None
        self._sort: _Sort | None = None
        self.ids: Sequence[int] = ()

    def of(
        self, table: "PersistentMap[Any, Any]", keys: "PersistentMap[int, Any]", budget: TimeBudget
    ) -> Sequence[int]:
        """Return the sorted `keys`, which are the same while `table` is the same map. Raises MatchUnfinished."""
        if self._table is not table or (self._sort is None and len(self.ids) != len(keys)):
            self._table, self._sort = table, _Sort(keys.keys())
        if self._sort is not None:
            self._sort.go_on(budget)
            self.ids, self._sort = self._sort.ids, None
        return self.ids


@final
class _Totals:
    """The running total of attachments, for each muxer those up to and including it, and the map of the muxers."""

    __slots__ = ("_table", "ends")

    def __init__(self) -> None:
        self._table: PersistentMap[int, Muxer] | None = None
        self.ends = array("Q")

    def of(self, muxers: "PersistentMap[int, Muxer]", ids: Sequence[int], budget: TimeBudget) -> Sequence[int]:
        """Return the totals of `muxers`, whose sorted ids are `ids`. Raises MatchUnfinished."""
        if self._table is not muxers:
            self._table, self.ends = muxers, array("Q")
        ends = self.ends
        while len(ends) < len(ids):
            total = ends[-1] if ends else 0
            for one in ids[len(ends) : len(ends) + _RUN]:
                total += len(muxers[one].attachments)
                ends.append(total)
            budget.check()
        return ends


@final
class SortedIds:
    """The sorted ids of one virtual host."""

    __slots__ = ("_attachments", "_budget", "_muxers", "_queues", "_subscriptions", "_totals")

    def __init__(self, budget: TimeBudget | None = None) -> None:
        """`budget` is the time in a tick for large maps."""
        self._budget = budget or TimeBudget()
        self._queues, self._subscriptions, self._muxers = _Order(), _Order(), _Order()
        self._attachments: dict[int, _Order] = {}
        """By muxer, the one that was added last at the end."""
        self._totals = _Totals()

    def queues(self, state: State) -> Sequence[int]:
        """Return the ids of all queues. Their names are compared, since publishing does not change them."""
        return self._queues.of(state.queue_names, state.queues, self._budget)

    def subscriptions(self, state: State) -> Sequence[int]:
        """Return the ids of all subscriptions, which are the ids of their queues."""
        return self._subscriptions.of(state.subscriptions, state.subscriptions, self._budget)

    def muxers(self, state: State) -> Sequence[int]:
        """Return the ids of all muxers."""
        return self._muxers.of(state.muxers, state.muxers, self._budget)

    def attachments(self, _state: State, muxer: Muxer) -> Sequence[int]:
        """Return the ids of a muxer's attachments."""
        table = muxer.attachments
        if len(table) <= _RUN:
            return sorted(table.keys())
        order = self._attachments.get(muxer.id)
        if order is None:
            if len(self._attachments) >= _LARGE_MAX:
                del self._attachments[next(iter(self._attachments))]
            order = self._attachments[muxer.id] = _Order()
        return order.of(table, table, self._budget)

    def attachment_count(self, state: State) -> int:
        """Return the number of attachments of all muxers."""
        ends = self._ends_of(state)
        return ends[-1] if ends else 0

    def places(self, state: State, offset: int) -> Iterator[tuple[Muxer, Sequence[int]]]:
        """Yield each muxer with the ids of its attachments, from the attachment number `offset` of all on."""
        muxers, ends = self.muxers(state), self._ends_of(state)
        while (place := bisect_right(ends, offset)) < len(muxers):
            muxer = state.muxers[muxers[place]]
            ids = self.attachments(state, muxer)
            yield muxer, ids[len(ids) - (ends[place] - offset) :]
            offset = ends[place]

    def _ends_of(self, state: State) -> Sequence[int]:
        return self._totals.of(state.muxers, self.muxers(state), self._budget)


_Found = tuple[Muxer | None, int]
"""An id; that of an attachment with its muxer."""


@final
class VisibleIds:
    """The ids of what one request may show, in the order of SortedIds; used by one request."""

    __slots__ = ("_budget", "_found", "_is_between", "_orders", "_shows", "_walk")

    def __init__(self, orders: SortedIds, shows: Callable[[str], bool], budget: TimeBudget) -> None:
        """Create it; `shows` is a function of an address to whether the request may show it."""
        self._orders = orders
        self._shows = shows
        self._budget = budget
        self._walk: Iterator[_Found | None] | None = None
        self._found: list[_Found] = []
        self._is_between = False
        """Whether the walk waits between two of its steps."""

    def queues(self, state: State) -> Sequence[int]:
        """Return the ids of the visible queues."""
        ids, queues, shows = self._orders.queues(state), state.queues, self._shows
        return self._ids((None, one) if shows(queue_address(queues[one].name)) else None for one in ids)

    def subscriptions(self, state: State) -> Sequence[int]:
        """Return the ids of the subscriptions whose whole topic is visible."""
        ids, shows = self._orders.subscriptions(state), self._shows
        return self._ids((None, one) if shows(topic_address(state.subscriptions[one].topic)) else None for one in ids)

    def muxers(self, state: State) -> Sequence[int]:
        """Return the ids of the visible muxers."""
        ids, shows = self._orders.muxers(state), self._shows
        return self._ids((None, one) if shows(muxer_address(state.muxers[one].name)) else None for one in ids)

    def attachments(self, state: State, muxer: Muxer) -> Sequence[int]:
        """Return the ids of a muxer's attachments, if the muxer is visible, whose members are visible."""
        return self._ids(self._of_muxer(state, muxer))

    def attachment_count(self, state: State) -> int:
        """Return the number of visible attachments of all muxers."""
        return len(self._all(self._of_all(state)))

    def places(self, state: State, offset: int) -> Iterator[tuple[Muxer, Sequence[int]]]:
        """Yield each visible attachment with its muxer, from the one with number `offset` on."""
        for muxer, one in self._all(self._of_all(state))[offset:]:
            if muxer is not None:
                yield muxer, [one]

    def _of_all(self, state: State) -> Iterator[_Found | None]:
        for one in self._orders.muxers(state):
            yield from self._of_muxer(state, state.muxers[one])

    def _of_muxer(self, state: State, muxer: Muxer) -> Iterator[_Found | None]:
        if not self._shows(muxer_address(muxer.name)):
            return
        for one in self._orders.attachments(state, muxer):
            member = muxer.attachments[one].member
            inner, queue = state.muxers.get(member), state.queues.get(member)
            address = muxer_address(inner.name) if inner is not None else queue_address(queue.name) if queue else ""
            yield (muxer, one) if self._shows(address) else None

    def _ids(self, walk: Iterator[_Found | None]) -> Sequence[int]:
        return [one for _, one in self._all(walk)]

    def _all(self, walk: Iterator[_Found | None]) -> Sequence[_Found]:
        """Return all of a walk, which goes on at the next call if the time is over. Raises MatchUnfinished."""
        # A walk that goes on shows the state in which it began: that is a moment of the listing, too.
        if self._walk is None:
            self._walk = walk
        try:
            for pair in self._walk:
                if pair is not None:
                    self._found.append(pair)
                self._is_between = True
                self._budget.check()
                self._is_between = False
        except MatchUnfinished:
            if not self._is_between:
                # The walk itself has ended: it sorts ids, and begins again with those that are sorted.
                self._walk = None
                self._found.clear()
            self._is_between = False
            raise
        return self._found


Orders = SortedIds | VisibleIds
"""The ids that a listing pages through."""
