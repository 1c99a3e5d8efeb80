"""An event as values that a program can read: its type and its facts, named as docs/log-source.md lists them.

Rule 1. An id is the offset of the record that created the object. The name of a queue follows its id if it is known.
Rule 2. Values are int, float, bool, str and lists of those: each encoding has them.
Rule 3. A run of any length is one set of facts: its entries are ranges [first, last] of consecutive offsets.
"""

from collections.abc import Callable
from typing import Final

from ambermq.engine.entries.entry_word import WORD_BYTES
from ambermq.engine.events import (
    Duplicated,
    Event,
    Grouped,
    Identified,
    Keyed,
    Moved,
    Prioritized,
    Published,
    QueueDeclared,
    Scheduled,
    Timed,
)
from ambermq.engine.events.event_type import Facts
from ambermq.engine.events.registry import BY_CLASS, REGISTRY

__all__ = ["EVENT_TYPES", "QueueName", "facts_of", "next_after", "queues_of", "type_of"]

QueueName = Callable[[int], str | None]
"""The id of a queue -> its name, or None if it is not known."""

_OF_QUEUES: Final = (Published, Moved, Timed, Scheduled, Prioritized, Grouped, Keyed, Identified, Duplicated)
"""The events that name several queues."""

EVENT_TYPES: Final = tuple(one.name for one in REGISTRY)
"""The name of every type of event."""


def type_of(event: Event) -> str:
    """Return the name of an event's type, such as `queue-declared`."""
    return BY_CLASS[type(event)].name


def facts_of(event: Event, name: QueueName) -> Facts:
    """Return the facts of an event, without those of every event: type, offset and time."""
    one, queues = BY_CLASS[type(event)], queues_of(event)
    facts = one.facts(event)
    by = getattr(event, "by", "")
    facts |= {"by": by} if by else {}
    if isinstance(event, _OF_QUEUES):
        return facts | {"queues": [name(queue) or "" for queue in queues], "queue_ids": list(queues)}
    if not queues:
        return facts
    known = event.name if type(event) is QueueDeclared else name(queues[0])
    if known is not None:
        return facts | {"queue": known, "queue_id": queues[0]}
    # A member without the name of a queue is a muxer.
    return facts if one.queue == "member" else facts | {"queue_id": queues[0]}


def queues_of(event: Event) -> tuple[int, ...]:
    """Return the ids of the queues that an event names."""
    field = BY_CLASS[type(event)].queue
    named = getattr(event, field) if field else ()
    return named if isinstance(named, tuple) else (named,)


def next_after(event: Event) -> int:
    """Return the offset after the last record of an event, from which a reader goes on."""
    return event.offset + (len(event.words) // WORD_BYTES if isinstance(event, (Published, Moved)) else 1)
