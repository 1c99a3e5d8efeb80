"""Events of messages that arrive, and of what is said about them in the same batch.

Rule 1. A run of messages is one Published; what most messages do not have (a time to live, a priority, a group, a key,
        a scheduled time) is an event of its own after it.
Rule 2. An event on several queues is one record (`fan_out`).

Imports: engine/entries, engine/events' own types and drafts, log.
Imported by: engine/events, and the readers of records for their flags.
Names: Published, Chunked, Timed, Prioritized, Grouped, Keyed, Identified, Duplicated, Committed.
"""

from typing import Final

from ambermq.engine.events.event_type import EventType
from ambermq.engine.events.messages import commits, marks, message_ids, published, uploads
from ambermq.engine.events.messages.commits import Committed
from ambermq.engine.events.messages.marks import Grouped, Keyed, Prioritized, Timed
from ambermq.engine.events.messages.message_ids import Duplicated, Identified
from ambermq.engine.events.messages.published import Published
from ambermq.engine.events.messages.uploads import Chunked, UploadEnded

__all__ = [
    "Chunked",
    "Committed",
    "Duplicated",
    "Grouped",
    "Identified",
    "Keyed",
    "Prioritized",
    "Published",
    "Timed",
    "UploadEnded",
]

MessageEvent = (
    Chunked | UploadEnded | Published | Timed | Prioritized | Grouped | Keyed | Identified | Duplicated | Committed
)

TYPES: Final[tuple[EventType, ...]] = (
    *uploads.TYPES,
    *published.TYPES,
    *marks.TYPES,
    *message_ids.TYPES,
    *commits.TYPES,
)
