"""All types of events, and the closed union of their classes. Tables by type are built from `REGISTRY`.

Rule: only the module of its family describes a type; no type registers itself.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from ambermq.engine.events import delays, deliveries, lifecycle, links, moves, muxers, queues
from ambermq.engine.events.delays import DelayEvent
from ambermq.engine.events.deliveries import DeliveryEvent
from ambermq.engine.events.event_type import FIRST_RELEASE, EventType
from ambermq.engine.events.lifecycle import LifecycleEvent
from ambermq.engine.events.links import LinkEvent
from ambermq.engine.events.messages import commits, marks, message_ids, published, uploads
from ambermq.engine.events.messages.commits import Committed
from ambermq.engine.events.messages.marks import MarkEvent
from ambermq.engine.events.messages.message_ids import MessageIdEvent
from ambermq.engine.events.messages.published import Published
from ambermq.engine.events.messages.uploads import UploadEvent
from ambermq.engine.events.moves import MoveEvent
from ambermq.engine.events.muxers import MuxerEvent
from ambermq.engine.events.queues import QueueEvent

__all__ = [
    "BY_CLASS",
    "NEWER_TYPES",
    "NUMBERS",
    "REGISTRY",
    "SKIPPABLE",
    "TYPE_NAMES",
    "Event",
    "least_release",
    "release_order",
]

Event = (
    LifecycleEvent
    | QueueEvent
    | MuxerEvent
    | LinkEvent
    | UploadEvent
    | Published
    | MarkEvent
    | MessageIdEvent
    | Committed
    | DeliveryEvent
    | MoveEvent
    | DelayEvent
)
"""Every event of the log."""

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
            *uploads.TYPES,
            *published.TYPES,
            *marks.TYPES,
            *message_ids.TYPES,
            *commits.TYPES,
            *deliveries.TYPES,
            *moves.TYPES,
            *delays.TYPES,
        ),
        key=_rank,
    )
)
"""Each type once, in the order in which programs list them."""

assert len({one.number for one in REGISTRY}) == len(REGISTRY), "two types of events have one number"

NUMBERS: Final[Mapping[type, int]] = {one.event: one.number for one in REGISTRY}
"""The type of an event's records, by the class of the event."""

TYPE_NAMES: Final[Mapping[int, str]] = dict(sorted((one.number, one.name) for one in REGISTRY))
"""The name of each type of record."""

BY_CLASS: Final[Mapping[type, EventType]] = {one.event: one for one in REGISTRY}
"""The type of each class of events."""

NEWER_TYPES: Final[Mapping[int, str]] = {one.number: one.since for one in REGISTRY if one.since != FIRST_RELEASE}
"""The types of records that the first release cannot read, to the first release that can."""


def least_release(types: Iterable[int]) -> str:
    """Return the first release that can read records of these types."""
    return max((NEWER_TYPES.get(one, FIRST_RELEASE) for one in types), key=release_order, default=FIRST_RELEASE)


def release_order(release: str) -> tuple[int, ...]:
    """Return a value by which releases are in order."""
    return tuple(map(int, release.split(".")))
