"""All types of events, and the closed union of their classes; tables by type are made of `REGISTRY`.

Rule: a family's module is the only place that knows a type; nothing registers itself.
"""

from collections.abc import Mapping
from typing import Final

from ambermq.engine.events import deliveries, lifecycle, links, messages, muxers, queues
from ambermq.engine.events.deliveries import DeliveryEvent
from ambermq.engine.events.event_type import EventType
from ambermq.engine.events.lifecycle import LifecycleEvent
from ambermq.engine.events.links import LinkEvent
from ambermq.engine.events.messages import MessageEvent
from ambermq.engine.events.muxers import MuxerEvent
from ambermq.engine.events.queues import QueueEvent

__all__ = ["BY_CLASS", "NUMBERS", "REGISTRY", "SKIPPABLE", "TYPE_NAMES", "Event"]

Event = LifecycleEvent | QueueEvent | MuxerEvent | LinkEvent | MessageEvent | DeliveryEvent
"""Whatever the log tells."""

SKIPPABLE: Final = 128
"""A flag of any record: a reader that does not know its type may skip it."""


def _rank(one: EventType) -> tuple[int, int]:
    return one.listed_after or one.number, one.number


REGISTRY: Final[tuple[EventType, ...]] = tuple(
    sorted(
        (
            *lifecycle.TYPES,
            *queues.TYPES,
            *muxers.TYPES,
            *links.TYPES,
            *messages.TYPES,
            *deliveries.TYPES,
        ),
        key=_rank,
    )
)
"""Each type once, in the order in which programs list them."""

assert len({one.number for one in REGISTRY}) == len(REGISTRY), "two types of events have one number"

NUMBERS: Final[Mapping[type, int]] = {one.event: one.number for one in REGISTRY}
"""By the class of an event the type of its records."""

TYPE_NAMES: Final[Mapping[int, str]] = dict(sorted((one.number, one.name) for one in REGISTRY))
"""By the type of a record its name."""

BY_CLASS: Final[Mapping[type, EventType]] = {one.event: one for one in REGISTRY}
"""By the class of an event its type."""
