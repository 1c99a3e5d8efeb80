"""The options of a producer: how its messages name their destination, and the outcome if a message reaches no queue."""

from enum import IntEnum
from typing import final

from msgspec import Struct

__all__ = ["DEFAULT_PUBLISH_OPTIONS", "PublishOptions", "Unroutable"]


class Unroutable(IntEnum):
    """The outcome of a message that reaches no queue. The numbers are on disk and never change meaning."""

    RELEASE = 0
    REJECT = 1
    """The target capability REJECT_UNROUTABLE requests it: rejected with amqp:not-found."""
    DISCARD = 2
    """The target capability DISCARD_UNROUTABLE requests it: accepted and dropped."""


@final
class PublishOptions(Struct, frozen=True, omit_defaults=True):
    """The options of one producer. A later field is added with a default, so old records stay readable."""

    unroutable: Unroutable = Unroutable.RELEASE
    is_immediate: bool = False
    """A message is unroutable if none of its queues has a consumer."""
    is_addressed: bool = False
    """Each message names its destination, or its whole address if the producer has no muxer."""
    is_routed: bool = False
    """It sends through the muxer QUEUE to a queue, but its address is that of the muxer: the queue never holds it back.
    """


DEFAULT_PUBLISH_OPTIONS = PublishOptions()
