"""The differences of two states of one log: wiring, queues, their counters, and messages that were added or removed.

Rule 1. Objects are compared by id, never by name: a queue that was deleted and declared again is two queues.
Rule 2. Messages are compared as ordered runs, so millions of them cost time but no memory. The result has their count,
        and the first ranges of consecutive offsets.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from heapq import merge
from typing import Any, Final

from ambermq.engine.entries.entry_word import entry_of
from ambermq.engine.history.updatable_settings import differing, values_of
from ambermq.engine.model.condition_text import argument_text
from ambermq.engine.model.queue import Queue
from ambermq.engine.model.queue_parts.counters import Counters
from ambermq.engine.model.state import State

__all__ = ["Change", "Entries", "changes_between"]

_RANGES_MAX: Final = 20
_QUEUE_COUNTERS: Final = ("published", "delivered", "accepted")


@dataclass(slots=True)
class Entries:
    """Messages that are on a queue in only one of the states."""

    count: int = 0
    ranges: list[tuple[int, int]] = field(default_factory=list)
    """The first twenty ranges: first and last of consecutive offsets."""
    last_offset: int = -1
    """The last offset of all."""

    def add(self, offset: int) -> None:
        """Add an offset above all that were added before."""
        if self.ranges and self.ranges[-1][1] == offset - 1 == self.last_offset:
            self.ranges[-1] = (self.ranges[-1][0], offset)
        elif len(self.ranges) < _RANGES_MAX:
            self.ranges.append((offset, offset))
        self.count += 1
        self.last_offset = offset


@dataclass(slots=True)
class Change:
    """One object that differs."""

    what: str
    """queue, muxer, route, producer or consumer."""
    name: str
    change: str
    """added, removed or changed."""
    id: int = 0
    """The id of a queue, muxer, producer or consumer."""
    depth_before: int = 0
    depth_after: int = 0
    """Messages on a queue, acquired ones included."""
    came: Entries = field(default_factory=Entries)
    went: Entries = field(default_factory=Entries)
    counters: dict[str, int] = field(default_factory=dict)
    """The differences of the queue's counters, without those that are 0."""
    options: dict[str, tuple[Any, Any]] = field(default_factory=dict)
    """The settings or options that differ, before and after, of a queue or muxer that is in both states."""


def changes_between(before: State, after: State) -> Iterator[Change]:
    """Yield every object that differs, wiring first, each kind in the order of ids."""
    yield from _wiring("muxer", before.muxers, after.muxers, lambda muxer: str(muxer.name))
    yield from _updated(before, after)
    yield from _routes(before, after)
    yield from _wiring("producer", before.producers, after.producers, _link_name)
    yield from _wiring("consumer", before.consumers, after.consumers, _link_name)
    for queue_id in sorted({*before.queues.keys(), *after.queues.keys()}):
        change = _queue_change(before.queues.get(queue_id), after.queues.get(queue_id))
        if change is not None:
            yield change


def _link_name(link: Any) -> str:
    return f"{link.container} {link.link}"


def _wiring(what: str, before: Mapping[int, Any], after: Mapping[int, Any], name: Any) -> Iterator[Change]:
    for one in sorted(set(before) - set(after)):
        yield Change(what, name(before[one]), "removed", one)
    for one in sorted(set(after) - set(before)):
        yield Change(what, name(after[one]), "added", one)


def _updated(before: State, after: State) -> Iterator[Change]:
    for one in sorted(set(before.muxers) & set(after.muxers)):
        old, new = before.muxers[one], after.muxers[one]
        if old.options != new.options:
            yield Change("muxer", new.name, "changed", one, options=differing(values_of(old), values_of(new)))


def _routes(before: State, after: State) -> Iterator[Change]:
    old, new = set(_routes_of(before)), set(_routes_of(after))
    for change, routes in (("removed", old - new), ("added", new - old)):
        for muxer, destination, queue in sorted(routes):
            yield Change("route", f"{muxer} {destination} -> {queue}", change)


def _routes_of(state: State) -> Iterator[tuple[str, str, str]]:
    for muxer in state.muxers.values():
        for one in muxer.attachments.values():
            member = state.queues.get(one.member) or state.muxers.get(one.member)
            member_name = f"{member.name} ({one.member})" if member else str(one.member)
            yield muxer.name, argument_text(one.argument), member_name


def _queue_change(old: Queue | None, new: Queue | None) -> Change | None:
    if old is new or old == new:
        return None
    queue = new or old
    assert queue is not None
    change = Change("queue", queue.name, "changed" if old and new else "added" if new else "removed", queue.id)
    change.depth_before, change.depth_after = (one.depth if one else 0 for one in (old, new))
    change.counters = _differences(_counters(old), _counters(new))
    if old and new:
        change.options = differing(values_of(old), values_of(new))
    _compare(_offsets(old), _offsets(new), change)
    return change


def _counters(queue: Queue | None) -> dict[str, int]:
    if queue is None:
        return {}
    counters = queue.counters
    values = {name: getattr(queue, name) for name in _QUEUE_COUNTERS}
    values |= {name: getattr(counters, name) for name in Counters.__struct_fields__ if name not in values}
    return values | {"acquired": queue.acquired_count, "bytes": queue.size}


def _differences(before: dict[str, int], after: dict[str, int]) -> dict[str, int]:
    differences = {name: after.get(name, 0) - before.get(name, 0) for name in (after or before)}
    return {name: difference for name, difference in differences.items() if difference}


def _offsets(queue: Queue | None) -> Iterable[int]:
    """Return the offsets of all messages on a queue, in order."""
    if queue is None:
        return iter(())
    held = sorted(word for words in queue.acquired.values() for word in words)
    return map(entry_of, merge(*queue.waiting_lists, held))


def _compare(before: Iterable[int], after: Iterable[int], change: Change) -> None:
    """Add the differences of two ordered runs to `change`; the runs are walked in parallel."""
    olds, news = iter(before), iter(after)
    old, new = next(olds, None), next(news, None)
    while old is not None or new is not None:
        if old == new:
            old, new = next(olds, None), next(news, None)
        elif new is None or (old is not None and old < new):
            assert old is not None
            change.went.add(old)
            old = next(olds, None)
        else:
            change.came.add(new)
            new = next(news, None)
