"""The differences of two states, with the queues that were deleted in between. Pure.

Rule 1. Queues are compared by id: a queue that was declared again under its name is another queue.
Rule 2. A link that attached and detached in between is in neither state; its events are counted like all others.
Rule 3. The attachment of a queue to QUEUE by its own name is not listed: every queue has it.
Rule 4. Settings and options are compared as they are in the two states, without the updates in between.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from ambermq.engine.address import MUXER_MEMBER
from ambermq.engine.events import Event, QueueDeleted, Reset
from ambermq.engine.fold.apply import apply
from ambermq.engine.history.updatable_settings import differing, values_of
from ambermq.engine.model.condition_text import argument_text
from ambermq.engine.model.muxer import QUEUE_MUXER, Muxer
from ambermq.engine.model.queue import Queue
from ambermq.engine.model.state import Consumer, Producer, State
from ambermq.protocol.management.queues import queue_attributes
from ambermq.tools.history.event_text import type_of

__all__ = ["COUNTS", "StateFold", "link_changes", "member_names", "queue_changes", "wiring_changes"]

COUNTS: Final = ("published", "delivered", "accepted", "rejected", "released", "failed", "purged", "damaged")
"""The counters of a queue, in messages."""


class StateFold:
    """The fold of events from one state to a later one."""

    def __init__(self, before: State) -> None:
        self.before = before
        """The first of the two."""
        self.after = before
        """The second, after the fold of all events."""
        self.deleted: dict[int, Queue] = {}
        """The queues that were deleted in between, as they were then."""
        self.counts: Counter[str] = Counter()
        """The number of events by type."""

    def fold(self, events: Iterable[Event]) -> None:
        """Fold events into the state."""
        for event in events:
            state = apply(self.after, event)
            if type(event) is QueueDeleted or type(event) is Reset:
                queues = self.after.queues
                self.deleted.update({one: queues[one] for one in queues if one not in state.queues})
            self.after = state
            self.counts[type_of(event)] += 1


def queue_changes(between: StateFold) -> Iterator[dict[str, Any]]:
    """Yield a row for each queue that changed: the change, its depth at both moments, and its counters."""
    before, after = between.before.queues, between.after.queues
    for queue_id in sorted({*before, *after, *between.deleted}):
        then, now = before.get(queue_id), after.get(queue_id)
        last = now or between.deleted[queue_id]
        if then is not now or queue_id in between.deleted:
            yield _queue_change(then, now, last)


def _queue_change(then: Queue | None, now: Queue | None, last: Queue) -> dict[str, Any]:
    changes = (["declared"] if then is None else []) + (["deleted"] if now is None else [])
    counts, old = queue_attributes(last, 0), {} if then is None else queue_attributes(then, 0)
    return {
        "name": last.name,
        "id": last.id,
        "change": " and ".join(changes) or "changed",
        "depth_then": None if then is None else then.depth,
        "depth_now": None if now is None else now.depth,
        **{name: counts[name] - old.get(name, 0) for name in COUNTS},
    }


def member_names(between: StateFold) -> dict[int, str]:
    """Return the names of members by id: queues, deleted ones too, and muxers with their prefix."""
    before, after = between.before, between.after
    muxers = {one.id: f"{MUXER_MEMBER}{one.name}" for state in (before, after) for one in state.muxers.values()}
    queues = (before.queues, after.queues, between.deleted)
    return muxers | {queue_id: queue.name for ones in queues for queue_id, queue in ones.items()}


def wiring_changes(before: State, after: State, names: Mapping[int, str]) -> Iterator[dict[str, Any]]:
    """Yield the changes of wiring: declared, updated, deleted, attached, detached; `names` has the members' names."""
    for queue_id in sorted({*before.queues} & {*after.queues}):
        yield from _updated(before.queues[queue_id], after.queues[queue_id])
    for muxer in sorted({*before.muxers, *after.muxers}):
        one = after.muxers.get(muxer) or before.muxers[muxer]
        if muxer not in before.muxers:
            yield {"change": "declared", "muxer": one.name, "queue": None, "destination": None}
        if muxer not in after.muxers:
            yield {"change": "deleted", "muxer": one.name, "queue": None, "destination": None}
        if muxer in before.muxers and muxer in after.muxers:
            yield from _updated(before.muxers[muxer], after.muxers[muxer])
        then, now = _routes(before, muxer), _routes(after, muxer)
        for change, routes in (("attached", now - then), ("detached", then - now)):
            for destination, queue in sorted(routes):
                if one.name != QUEUE_MUXER or names.get(queue) != destination:
                    member = names.get(queue, f"queue {queue}")
                    yield {"change": change, "muxer": one.name, "queue": member, "destination": destination}


def _updated(then: Queue | Muxer, now: Queue | Muxer) -> Iterator[dict[str, Any]]:
    """Yield the settings or options of a queue or muxer that differ, if any."""
    values = differing(values_of(then), values_of(now))
    if values:
        pairs = {name: {"before": old, "after": new} for name, (old, new) in values.items()}
        muxer, queue = (now.name, None) if isinstance(now, Muxer) else (None, now.name)
        yield {"change": "updated", "muxer": muxer, "queue": queue, "destination": None, "values": pairs}


def _routes(state: State, muxer: int) -> set[tuple[str, int]]:
    found = state.muxers.get(muxer)
    attachments = () if found is None else found.attachments.values()
    return {(argument_text(one.argument), one.member) for one in attachments}


def link_changes(before: State, after: State, names: Mapping[int, str]) -> Iterator[dict[str, Any]]:
    """Yield the links that are only in the second state, and those that are only in the first."""
    for change, here, there in (("came", after, before), ("went", before, after)):
        for producer in here.producers.values():
            if producer.id not in there.producers:
                yield _link(change, "producer", producer, producer.destination)
        for consumer in here.consumers.values():
            if consumer.id not in there.consumers:
                yield _link(change, "consumer", consumer, names.get(consumer.queue, f"queue {consumer.queue}"))


def _link(change: str, kind: str, link: Producer | Consumer, node: str) -> dict[str, Any]:
    return {"change": change, "link": kind, "id": link.id, "node": node, "name": f"{link.container}/{link.link}"}
