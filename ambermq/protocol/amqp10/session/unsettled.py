"""The unsettled deliveries of a session, one ring a direction.

A ring is a sorted list of runs: consecutive delivery-ids of one link, with their tokens in one shared list.

Rule 1. A range that a peer names costs what is held of it, not its length: half of all ids are one walk.
Rule 2. To take the head of a run copies no tokens. Runs are bounded, so to take from their middle is cheap, too.
Rule 3. A range goes forwards around the circle of ids, from first to last.
Rule 4. The peer's outcome for a delivery is reported once. The delivery then moves to a ring of its own until it is
        settled, so a repeated outcome costs nothing.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from ambermq.protocol.amqp10.link.link import Link
from ambermq.protocol.amqp10.serial_number import MASK

__all__ = ["RUN_COUNT_MAX", "DeliveryRing", "Run"]

RUN_COUNT_MAX: Final = 1024
"""How far a run is extended, in deliveries. A run that was sent with more keeps its length."""


class Run(Struct, eq=False):
    """Consecutive unsettled deliveries of one link."""

    link: Link
    first_id: int
    count: int
    _tokens: list[int] | None
    _start: int
    is_second: bool

    def tokens(self) -> list[int]:
        """Return the tokens of sent deliveries; for received deliveries their ids."""
        if self._tokens is None:
            return [(self.first_id + index) & MASK for index in range(self.count)]
        return self._tokens[self._start : self._start + self.count]

    def part(self, start: int, count: int) -> Run:
        """Return the run of `count` deliveries from the `start`-th; it shares the tokens."""
        return Run(
            self.link,
            (self.first_id + start) & MASK,
            count,
            self._tokens,
            self._start + start,
            self.is_second,
        )

    def shorten(self, count: int) -> None:
        """Drop the first `count` deliveries, which are not all."""
        self.first_id = (self.first_id + count) & MASK
        self.count -= count
        self._start += count

    def extend(self, link: Link, first_id: int, count: int, tokens: Sequence[int] | None, *, is_second: bool) -> bool:
        """Add deliveries that continue this run; return False if they do not, or if the run is full."""
        if (
            link is not self.link
            or first_id != (self.first_id + self.count) & MASK
            or self.count + count > RUN_COUNT_MAX
            or is_second != self.is_second
        ):
            return False
        if tokens is not None:
            mine = self._tokens
            # The list may hold tokens after the run, if its tail was taken: then it cannot be extended.
            if mine is None or len(mine) != self._start + self.count or len(mine) > 4 * RUN_COUNT_MAX:
                return False
            mine.extend(tokens)
        self.count += count
        return True


class DeliveryRing:
    """The unsettled deliveries of one direction, in the order of delivery-ids."""

    __slots__ = ("_links", "_reported", "_runs", "count")

    def __init__(self) -> None:
        self._runs: list[Run] = []
        self._links: set[Link] = set()
        self._reported: DeliveryRing | None = None
        self.count = 0
        """The number of held deliveries, reported ones included."""

    def append(
        self, link: Link, first_id: int, count: int, tokens: Sequence[int] | None = None, *, is_second: bool = False
    ) -> None:
        """Add `count` deliveries from `first_id`, which must not be held. Without `tokens` their ids are the tokens."""
        runs = self._runs
        self.count += count
        if runs and runs[-1].extend(link, first_id, count, tokens, is_second=is_second):
            return
        self._links.add(link)
        run = Run(link, first_id, count, None if tokens is None else list(tokens), 0, is_second)
        if not runs or (first_id - runs[-1].first_id) & MASK < 0x80000000:
            runs.append(run)
        elif (runs[0].first_id - first_id) & MASK < 0x80000000:
            runs.insert(0, run)
        else:
            runs.insert(self._index((first_id - runs[0].first_id) & MASK) + 1, run)

    def take(self, first_id: int, last_id: int) -> list[Run]:
        """Remove the held deliveries of the range; return their runs in ring order, the reported ones first."""
        runs = self._runs
        count = ((last_id - first_id) & MASK) + 1
        # Settlements mostly come in order, from the head: the hot path.
        if runs and first_id == (head := runs[0]).first_id and count <= head.count:
            self.count -= count
            if count == head.count:
                del runs[0]
                return [head]
            taken = head.part(0, count)
            head.shorten(count)
            return [taken]
        parts = self._take_reported(first_id, last_id)
        parts += self._take_unreported(first_id, last_id)
        self.count -= sum(part.count for part in parts)
        return parts

    def report(self, first_id: int, last_id: int) -> list[Run]:
        """Return the held runs of the range that were not reported; they stay held, as reported ones."""
        parts = self._take_unreported(first_id, last_id)
        if parts:
            reported = self._reported = self._reported or DeliveryRing()
            for run in parts:
                reported.append(run.link, run.first_id, run.count, run.tokens(), is_second=run.is_second)
        return parts

    def find(self, first_id: int, last_id: int) -> list[Run]:
        """Return the held runs of the range, the reported ones first; they stay held."""
        parts = [] if self._reported is None else self._reported.find(first_id, last_id)
        for low, high in self._intervals(first_id, last_id):
            base = self._runs[0].first_id
            for index in range(max(self._index(low), 0), len(self._runs)):
                run = self._runs[index]
                at = (run.first_id - base) & MASK
                if at > high:
                    break
                start, end = max(low - at, 0), min(high - at + 1, run.count)
                if start < end:
                    parts.append(run.part(start, end - start))
        return parts

    def drop(self, link: Link) -> None:
        """Remove all deliveries of one link; free of cost if it never held one."""
        if link not in self._links:
            return
        self._links.discard(link)
        self._runs = [run for run in self._runs if run.link is not link]
        self.count = sum(run.count for run in self._runs)
        if self._reported is not None:
            self._reported.drop(link)
            self.count += self._reported.count

    def _take_reported(self, first_id: int, last_id: int) -> list[Run]:
        return [] if self._reported is None else self._reported.take(first_id, last_id)

    def _take_unreported(self, first_id: int, last_id: int) -> list[Run]:
        parts: list[Run] = []
        for low, high in self._intervals(first_id, last_id):
            parts += self._remove(low, high)
        return parts

    def _index(self, at: int) -> int:
        """Return the index of the last run that begins at or before `at` from the first held id; -1 for none."""
        base = self._runs[0].first_id
        return bisect_right(self._runs, at, key=lambda run: (run.first_id - base) & MASK) - 1

    def _intervals(self, first_id: int, last_id: int) -> list[tuple[int, int]]:
        """Return the range as one or two intervals, counted from the first held id."""
        if not self._runs:
            return []
        low = (first_id - self._runs[0].first_id) & MASK
        high = low + ((last_id - first_id) & MASK)
        if high <= MASK:
            return [(low, high)]
        if high - MASK >= low:
            return [(0, MASK)]
        return [(low, MASK), (0, high - MASK - 1)]

    def _remove(self, low: int, high: int) -> list[Run]:
        """Remove an interval from the list, and return its runs. Runs that exceed the interval are split."""
        runs = self._runs
        if not runs:
            return []
        base = runs[0].first_id
        begin = max(self._index(low), 0)
        end = self._index(high) + 1
        taken: list[Run] = []
        left: list[Run] = []
        for run in runs[begin:end]:
            at = (run.first_id - base) & MASK
            start, stop = max(low - at, 0), min(high - at + 1, run.count)
            if start >= stop:
                left.append(run)
                continue
            if start > 0:
                left.append(run.part(0, start))
            taken.append(run.part(start, stop - start))
            if stop < run.count:
                left.append(run.part(stop, run.count - stop))
        runs[begin:end] = left
        return taken
