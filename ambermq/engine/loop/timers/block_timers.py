"""The timers of one queue whose messages have times in a column: times and entries as numbers of one kind.

    near     one number for each message of the next seconds: time, then entry
    far      one number for each block of entries with later ones: that of its first message

Rule 1. Numbers are in the order of times; those of one time in the order of entries.
Rule 2. A block has up to 512 entries. It is looked at when its first message is due, and then its messages of the next
        seconds get numbers of their own. So a million messages for the next ten years have 2,000 numbers, and delay a
        start by a twentieth of a second.
        A block that is taken in parts has a number for its rest, whether the message of that number stays or not.
Rule 3. A look takes as long as the messages of its block, so it counts for some of those that a step may take.
"""

from collections.abc import Iterable, Sequence
from heapq import heapify, heappop, heappush
from typing import Final, final

from ambermq.engine.entries.entry_word import unpack_words
from ambermq.engine.loop.schedule import FOREVER_US
from ambermq.snapshot.persistent_column import PersistentColumn, block_end, block_number

__all__ = ["ENTRY", "NEVER", "SHIFT", "SPARE", "BlockTimers"]

SHIFT: Final = 48
"""The bits of an entry."""
ENTRY: Final = (1 << SHIFT) - 1
NEVER: Final = FOREVER_US << SHIFT
_NEAR_US: Final = 1 << 24
"""The least time for which a block gives its messages numbers: 17 seconds. It is twice that at most."""
_SPREAD: Final = 0x9E3779B1
"""Neighbouring blocks are looked at again at different times."""
_LOOK_COST: Final = 16
"""The messages that a look counts for."""
SPARE: Final = 1024


@final
class BlockTimers:
    """The timers of one queue."""

    __slots__ = ("_far", "_firsts", "_rest", "_until_us", "near")

    def __init__(self, column: PersistentColumn, near: Iterable[int] = ()) -> None:
        """Begin with the times of a column, and with numbers of other messages."""
        self.near: list[int] = [*near]
        """A heap; a message may be gone, or be twice in it."""
        heapify(self.near)
        self._rest: set[int] = set()
        """Those of its numbers that stand for the rest of a block, also if their own message is gone."""
        numbers = map(_first_of, column.blocks())
        self._firsts = {block_number(number & ENTRY): number for number in numbers}
        """The first message of a block that is not near, by block."""
        self._until_us: dict[int, int] = {}
        """The time up to which the messages of such a block are near, if some are."""
        self._far = [*self._firsts.values()]
        """A heap of the first messages of blocks; it may have others."""
        heapify(self._far)

    @property
    def length(self) -> int:
        """The numbers that it has, with those of messages that are gone."""
        return len(self.near) + len(self._firsts)

    @property
    def first(self) -> int:
        """The number of the first message; NEVER without one."""
        far, firsts = self._far, self._firsts
        while far and firsts.get(block_number(far[0] & ENTRY)) != far[0]:
            heappop(far)
        return min(self.near[0] if self.near else NEVER, far[0] if far else NEVER)

    def add(self, entries: Iterable[int], times: Iterable[int]) -> None:
        """Add messages, each with its time."""
        firsts, until_us = self._firsts, self._until_us
        for entry, time_us in zip(entries, times, strict=True):
            block, number = block_number(entry), time_us << SHIFT | entry
            if time_us < until_us.get(block, 0):
                heappush(self.near, number)
            elif number < firsts.get(block, NEVER):
                firsts[block] = number
                heappush(self._far, number)
        self._trim_far()

    def add_run(self, first: int, times: Sequence[int]) -> None:
        """Add the messages from entry `first` on as `add` does: a block that has no near ones costs one number."""
        start, end = first, first + len(times)
        while start < end:
            stop = min(end, block_end(start))
            some = times[start - first : stop - first]
            if block_number(start) in self._until_us:
                self.add(range(start, stop), some)
            else:
                time_us = min(some)
                self.add((start + some.index(time_us),), (time_us,))
            start = stop

    def prune(self, column: PersistentColumn) -> None:
        """Drop the numbers of messages that are gone, if they are the most: `column` has those that are there."""
        if len(self._firsts) > 2 * column.block_count + SPARE:
            self._firsts = {block: number for block, number in self._firsts.items() if column.has_block(block)}
            self._until_us = {block: time_us for block, time_us in self._until_us.items() if block in self._firsts}
            self._far = [*self._firsts.values()]
            heapify(self._far)
        if len(self.near) > 2 * column.count + SPARE:
            rest = self._rest
            self.near = [number for number in {*self.near} if number in rest or column.get(number & ENTRY)]
            heapify(self.near)

    def take(self, column: PersistentColumn, now_us: int, count_max: int) -> tuple[list[int], int]:
        """Return the numbers of messages that are due, and forget them; and how many messages that counts for.

        They are at most `count_max`; if there are more, the first one is due still.
        """
        near, last = self.near, (now_us + 1) << SHIFT
        numbers: list[int] = []
        looks = 0
        while len(numbers) < count_max and (first := self.first) < last:
            if not near or near[0] != first:
                if looks * _LOOK_COST >= count_max:
                    break
                self._look(column, first)
                looks += 1
                continue
            heappop(near)
            if not numbers or numbers[-1] != first:
                numbers.append(first)
        return numbers, len(numbers) + looks * _LOOK_COST

    def take_block(
        self, column: PersistentColumn, now_us: int, count_max: int, seen: dict[int, int]
    ) -> tuple[list[int], int]:
        """Return the rising entries of a block whose times have come, at most `count_max`, and what that counts for.

        They begin with the first message that is due and has its time still: if it is near, those before it have
        numbers of their own. `seen` has the first entry that was returned of each block. There are none if `count_max`
        numbers are of messages that are gone or seen.
        """
        near, rest, last = self.near, self._rest, (now_us + 1) << SHIFT
        spent = 0
        while spent < count_max and (first := self.first) < last:
            entry = first & ENTRY
            block = block_number(entry)
            end = seen.get(block, block_end(entry))
            if near and near[0] == first:
                heappop(near)
                spent += 1
                is_rest = first in rest
                rest.discard(first)
                if entry >= end or not (is_rest or column.get(entry) == first >> SHIFT):
                    continue
                keys, values = map(unpack_words, column.block_of(entry))
                start = entry
            else:
                keys, values = self._look(column, first, above_us=now_us)
                start = 0
            spent += _LOOK_COST
            known = zip(keys, values, strict=True)
            due = [(key, time_us) for key, time_us in known if start <= key < end and time_us <= now_us]
            seen[block] = min(start, end)
            if len(due) > count_max:
                # The next step goes on from there.
                key, time_us = due[count_max]
                heappush(near, time_us << SHIFT | key)
                rest.add(time_us << SHIFT | key)
            if due:
                return [key for key, _ in due[:count_max]], spent + len(due)
        return [], spent

    def _look(
        self, column: PersistentColumn, first: int, *, above_us: int = 0
    ) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Replace the number of a block by numbers of its messages, from its first one on; return entries and times.

        Those before it, also of the same time, had their numbers already: they may be taken by now. Only messages
        above a time get numbers: the caller takes the others.
        """
        heappop(self._far)
        block, from_us = block_number(first & ENTRY), first >> SHIFT
        until_us = from_us + _NEAR_US + block * _SPREAD % _NEAR_US
        keys, values = map(unpack_words, column.block_of(first & ENTRY))
        next_us = FOREVER_US
        for entry, time_us in zip(keys, values, strict=True):
            number = time_us << SHIFT | entry
            if first <= number and time_us < until_us:
                if time_us > above_us:
                    heappush(self.near, number)
            elif until_us <= time_us < next_us:
                next_us = time_us
        if next_us == FOREVER_US:
            self._firsts.pop(block, None)
            self._until_us.pop(block, None)
            return keys, values
        number = next_us << SHIFT | keys[values.index(next_us)]
        self._firsts[block], self._until_us[block] = number, until_us
        heappush(self._far, number)
        return keys, values

    def _trim_far(self) -> None:
        if len(self._far) > 2 * len(self._firsts) + SPARE:
            self._far = [*self._firsts.values()]
            heapify(self._far)


def _first_of(block: tuple[bytes, bytes]) -> int:
    """Return the number of the first message of a block."""
    keys, values = memoryview(block[0]).cast("Q"), unpack_words(block[1])
    time_us = min(values)
    return time_us << SHIFT | keys[values.index(time_us)]
