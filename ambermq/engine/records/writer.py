"""Encode events as log records. The module of each event in engine/events defines its record and encodes it."""

from collections.abc import Mapping
from typing import Final

from ambermq.engine.events import Event
from ambermq.engine.events.column_codec import writer_of
from ambermq.engine.events.event_type import Write
from ambermq.engine.events.registry import REGISTRY
from ambermq.log.write.draft import Draft

__all__ = ["WRITE", "write_event"]

WRITE: Final[Mapping[type, Write]] = {one.event: writer_of(one) for one in REGISTRY}
"""The function that `write_event` calls for each class of events. The loop uses the table directly, for speed."""


def write_event(draft: Draft, event: Event) -> int:
    """Add the records of an event to the draft and return the offset of the first one, which is the event's offset."""
    return WRITE[type(event)](draft, event)
