"""Which consumer each message group is bound to, from the events of dispatches alone.

Rule 1. The deliveries of one dispatch are events one after the other, an event for each consumer. So what they say of
        the order among consumers is known at their end: a round.
Rule 2. While a consumer holds messages of a group, no other one gets a message of it. An odd code is of the last
        message of a binding: the next one may go to another consumer, so such a round says nothing of its group.
"""

from collections.abc import Mapping
from typing import final

from ambermq.engine.events import Acquired

__all__ = ["GroupHolders"]

Line = tuple[int, int, int, int]
"""Queue, priority, group and consumer."""


@final
class GroupHolders:
    """The bindings of all queues, and what the round of now adds."""

    def __init__(self) -> None:
        self.newest: dict[Line, int] = {}
        """The newest entry of each line that was acquired in this round."""
        self._bound: dict[tuple[int, int], tuple[int, set[int]]] = {}
        """Queue and group -> its consumer, and the entries that it got."""
        self._round: list[tuple[int, int, int]] = []
        """The entry, its code and its consumer."""
        self._next = (0, 0)
        """The queue and the offset of an event that is of this round."""

    def is_next(self, event: Acquired) -> bool:
        """Return whether a dispatch goes on with this event."""
        return (event.queue, event.offset) == self._next

    def begin(self, event: Acquired) -> None:
        """Begin the next event of the round."""
        self._next = event.queue, event.offset + 1

    def note_newest(self, line: Line, entry: int, consumer: int) -> None:
        """Note an entry that was acquired for the first time; in this round it comes after others of its consumer."""
        own = (*line[:3], -consumer)
        assert entry > self.newest.get(own, -1), "a message overtakes another one of its consumer"
        self.newest[own] = entry
        self.newest[line] = max(entry, self.newest.get(line, -1))

    def acquired(self, consumer: int, entry: int, code: int) -> None:
        """Note an entry with a group."""
        self._round.append((entry, code, consumer))

    def end_round(self, places: Mapping[int, Mapping[int, int]]) -> None:
        """Hold the deliveries of a round against the bindings; `places` says what consumers hold."""
        queue, held = self._next[0], places.get(self._next[0], {})
        ended = {code // 2 for _, code, _ in self._round if code % 2}
        for entry, code, consumer in self._round:
            key = queue, code // 2
            if code // 2 in ended:
                self._bound.pop(key, None)
                continue
            holder, entries = self._bound.get(key, (consumer, set[int]()))
            if holder != consumer:
                assert not any(held.get(one) == holder for one in entries), "two consumers hold a group"
                entries = set()
            self._bound[key] = consumer, entries | {entry}
        self._round.clear()
        self.newest.clear()
        self._next = 0, 0

    def succeed(self, link: int, successor: int) -> None:
        """Note that a consumer has resumed what a link held."""
        for key, (holder, entries) in self._bound.items():
            if holder == link:
                self._bound[key] = successor, entries
