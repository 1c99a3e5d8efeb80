"""What dead letters and redrives leave on a message: where it came from, why and when.

The marks are message annotations of each delivery. The bare message stays as its producer sent it.

    x-opt-dead-letter-reason        symbol   expired, rejected, delivery-count, length
    x-opt-dead-letter-description   string   the condition and text of the consumer that rejected it
    x-opt-deadletter-source         string   the queue that it came from last; the name is that of Service Bus
    x-opt-dead-letter-first-source  string   the queue that it came from first, if that is another one
    x-opt-dead-letter-time          timestamp
    x-opt-dead-letter-count         uint     how often the broker has moved it
    x-opt-redrive-count             uint     how often a person has sent it back

Encoded by the type system of AMQP 1.0, part 1, section 1.6.
"""

from typing import final

from msgspec import Struct
from msgspec.structs import replace

from ambermq.engine.entries.discard_reason import MoveReason

__all__ = ["DESCRIPTION_BYTES_MAX", "Marks", "SetAsideFor", "cut_description", "dead_letter_marks"]

DESCRIPTION_BYTES_MAX = 1024
"""The maximum UTF-8 bytes of the description. It is part of the fold, so it never changes."""


@final
class SetAsideFor(Struct, frozen=True, omit_defaults=True):
    """Why a message waits beside its queue for its dead-letter target."""

    reason: MoveReason
    description: str = ""
    """The condition and text of the consumer that rejected it."""


@final
class Marks(Struct, frozen=True, omit_defaults=True):
    """The marks of a message; most messages of a move share one value."""

    reason: MoveReason
    """Why it became a dead letter the last time."""
    source: str
    """The name of the queue that it left then."""
    source_id: int
    time_us: int
    description: str = ""
    first_source: str = ""
    """The name of the queue that it left the first time; empty if that is `source`."""
    count: int = 1
    """How often the broker has moved it."""
    redrives: int = 0
    moves: int = 1
    """How often the broker has moved it since the last redrive."""
    visited: tuple[tuple[int, MoveReason], ...] = ()
    """The queues that it left, and why, since a consumer last rejected it or a person redrove it."""

    def redriven(self) -> "Marks":
        """Return the marks after a redrive: what the broker has done before does not count against it any more."""
        return replace(self, redrives=self.redrives + 1, moves=0, visited=())

    @property
    def annotations(self) -> tuple[tuple[bytes, bytes], ...]:
        """Return the marks as message annotations: pairs of encoded key and encoded value, sorted by key."""
        values = {
            "x-opt-dead-letter-reason": _symbol(self.reason.text),
            "x-opt-deadletter-source": _string(self.source),
            "x-opt-dead-letter-time": b"\x83" + (self.time_us // 1000).to_bytes(8, "big"),
            "x-opt-dead-letter-count": b"\x70" + self.count.to_bytes(4, "big"),
        }
        if self.description:
            values["x-opt-dead-letter-description"] = _string(self.description)
        if self.first_source:
            values["x-opt-dead-letter-first-source"] = _string(self.first_source)
        if self.redrives:
            values["x-opt-redrive-count"] = b"\x70" + self.redrives.to_bytes(4, "big")
        return tuple(sorted((_symbol(name), value) for name, value in values.items()))


def dead_letter_marks(
    before: Marks | None, reason: MoveReason, source: str, source_id: int, time_us: int, description: str
) -> Marks:
    """Return the marks of a message that the broker moves from the queue `source`; `before` are those that it has."""
    if before is None:
        return Marks(reason, source, source_id, time_us, description, visited=_visited((), source_id, reason))
    first = before.first_source or before.source
    return Marks(
        reason,
        source,
        source_id,
        time_us,
        description,
        "" if first == source else first,
        before.count + 1,
        before.redrives,
        before.moves + 1,
        _visited(before.visited, source_id, reason),
    )


def _visited(
    before: tuple[tuple[int, MoveReason], ...], queue: int, reason: MoveReason
) -> tuple[tuple[int, MoveReason], ...]:
    """Return the queues that a message has left; a rejection begins anew."""
    return () if reason is MoveReason.REJECTED else (*before, (queue, reason))


def cut_description(condition: str, description: str) -> str:
    """Return a consumer's error as one text of limited length."""
    text = ": ".join(one for one in (condition, description) if one)
    if len(text) * 4 > DESCRIPTION_BYTES_MAX:
        text = text.encode("utf-8", "replace")[:DESCRIPTION_BYTES_MAX].decode("utf-8", "ignore")
    return text


def _symbol(text: str) -> bytes:
    data = text.encode("ascii")
    return b"\xa3" + bytes((len(data),)) + data


def _string(text: str) -> bytes:
    data = text.encode("utf-8", "replace")
    if len(data) < 256:
        return b"\xa1" + bytes((len(data),)) + data
    return b"\xb1" + len(data).to_bytes(4, "big") + data
