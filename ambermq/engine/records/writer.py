"""Events as log records; reader.py reads them. Each event's module in engine/events draws its record and encodes it."""

from collections.abc import Mapping
from typing import Final

from ambermq.engine.events import Event
from ambermq.engine.events.column_codec import writer_of
from ambermq.engine.events.event_type import Write
from ambermq.engine.events.registry import REGISTRY
from ambermq.log.write.draft import Draft

__all__ = ["WRITE", "write_event"]

WRITE: Final[Mapping[type, Write]] = {one.event: writer_of(one) for one in REGISTRY}
"""By the class of an event what `write_event` calls for it: the loop looks there itself."""


def write_event(draft: Draft, event: Event) -> int:
    """Add an event's records to the draft and return the offset of the first; it is the event's own."""
    return WRITE[type(event)](draft, event)
