"""How a producer sends: what its messages are for, and what becomes of those that reach no queue."""

from enum import IntEnum
from typing import final

from msgspec import Struct

__all__ = ["DEFAULT_PUBLISH_OPTIONS", "PublishOptions", "Unroutable"]


class Unroutable(IntEnum):
    """The outcome of a message that reaches no queue. The numbers are on disk and never change meaning."""

    RELEASE = 0
    REJECT = 1
    """Asked for by the target capability REJECT_UNROUTABLE: rejected with amqp:not-found."""
    DISCARD = 2
    """Asked for by the target capability DISCARD_UNROUTABLE: accepted, and gone."""


@final
class PublishOptions(Struct, frozen=True, omit_defaults=True):
    """What a producer asked for. A later field is added with a default, so old records stay readable."""

    unroutable: Unroutable = Unroutable.RELEASE
    is_immediate: bool = False
    """A message for queues that have no consumer counts as unroutable."""
    is_addressed: bool = False
    """Each message names what it is for: its destination, or all of its address where the producer has no muxer."""


DEFAULT_PUBLISH_OPTIONS = PublishOptions()
