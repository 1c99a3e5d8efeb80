"""Commands of requests on messages: schedule them, take deferred ones, settle deliveries by their names."""

from collections.abc import Callable, Sequence
from typing import Any, final

from msgspec import Struct

from ambermq.engine.commands.messages import Publish
from ambermq.engine.commands.signed_command import SignedCommand
from ambermq.engine.entries.outcome import Outcome

__all__ = ["ScheduleMessages", "SettleNamed", "TakeDeferred"]


@final
class TakeDeferred(Struct):
    """A consumer takes messages that a consumer has returned as undeliverable-here. All of them, or it is refused.

    The answer is what `read` makes of the words, their columns, and the end of their locks in milliseconds since 1970,
    0 for no lock.
    """

    key: Any
    consumer: int
    offsets: Sequence[int]
    settles: bool
    """Whether the messages leave the queue at once, as accepted."""
    read: Callable[[Sequence[int], Sequence[Any], int], Any]


@final
class SettleNamed(Struct):
    """Settle deliveries of a queue: all, or it is refused. The answer is empty."""

    key: Any
    queue: str
    """The address of the queue."""
    deliveries: Sequence[tuple[int, int]]
    """The word and the attempt of each delivery."""
    outcome: Outcome
    consumers: frozenset[int] | None = None
    """Only deliveries that these consumers hold count as held; None: those of any consumer."""


@final
class ScheduleMessages(SignedCommand):
    """Publish messages that are scheduled for later to a queue: all, or it is refused.

    The answer is what `read` makes of their offsets.
    """

    key: Any
    queue: str
    """The address of the queue."""
    container: str
    link: str
    """The name of the producer in the history."""
    messages: Sequence[Publish]
    """One message each."""
    read: Callable[[Sequence[int]], Any]
