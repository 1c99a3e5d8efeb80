"""Encode events as log records. The module of each event in engine/events defines its record and encodes it."""

from collections.abc import Mapping
from typing import Any, Final

from ambermq.engine.events import Event
from ambermq.engine.events.column_codec import writer_of
from ambermq.engine.events.event_type import EventType, Write
from ambermq.engine.events.registry import NEWER_TYPES, REGISTRY
from ambermq.log.write.draft import Draft

__all__ = ["WRITE", "write_event"]


def _writer(one: EventType) -> Write:
    """Return the function that adds an event to a draft; it notes a type that the first release cannot read."""
    write, number = writer_of(one), one.number
    if number not in NEWER_TYPES:
        return write

    def write_newer(draft: Any, event: Any, /) -> int:
        draft.newer_types.add(number)
        return write(draft, event)

    return write_newer


WRITE: Final[Mapping[type, Write]] = {one.event: _writer(one) for one in REGISTRY}
"""The function that `write_event` calls for each class of events. The loop uses the table directly, for speed."""


def write_event(draft: Draft, event: Event) -> int:
    """Add the records of an event to the draft and return the offset of the first one, which is the event's offset."""
    return WRITE[type(event)](draft, event)
