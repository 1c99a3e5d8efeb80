"""The inputs of a decision besides the command and the state, and its result."""

from collections.abc import Callable, Sequence

from msgspec import Struct

from ambermq.engine.config import EngineConfig
from ambermq.engine.effects import Effect
from ambermq.engine.entries.entry import Entry
from ambermq.engine.errors import Refused
from ambermq.engine.events import Event
from ambermq.engine.routing.router import Router
from ambermq.engine.selectors.fields import Fields
from ambermq.engine.transactions.reservations import Reservations
from ambermq.log.buffer import Buffer

__all__ = [
    "Decision",
    "DecisionContext",
    "Peek",
    "Read",
    "check_size",
    "peek_nothing",
    "read_nothing",
    "signed",
    "too_many",
]


Peek = Callable[[int, Sequence[int], Sequence[Entry | None]], Sequence[Fields | None] | None]
"""A function from a queue's id, words and their columns to the fields of the messages, at least of the first ones. An
element is None if its message cannot be read. The result is None if they must be read from the disk first."""


def peek_nothing(_queue: int, _words: Sequence[int], _entries: Sequence[Entry | None]) -> None:
    """Return None: nothing can be read now."""


Read = Callable[[int, Sequence[int], Sequence[Entry | None]], Sequence[Buffer | None] | None]
"""A function from the same to the whole messages. An element is None if its message is damaged."""


def read_nothing(_queue: int, _words: Sequence[int], _entries: Sequence[Entry | None]) -> None:
    """Return None: no message can be read now."""


class DecisionContext(Struct, frozen=True):
    """The time, the position in the log, the free space and the limits of a decision."""

    now_us: int
    next_offset: int
    """The offset of the first event of the decision."""
    room_bytes: int
    """The bytes that publishing may still write."""
    config: EngineConfig
    router: Router
    """The router of the state that the decision reads."""
    batch_bytes_max: int = 4 << 20
    """The maximum size of a batch of the log; no record may be larger."""
    room_keeper: str = ""
    """The requested snapshot that keeps history on a full disk; empty if there is none."""
    full_queue: int = 0
    """A queue of the message without room, found by its fan-out in parts; 0 for none."""
    peek: Peek = peek_nothing
    """The reader of the fields of waiting messages."""
    reserved: Reservations | None = None
    """The room that open transactions keep; None if there is none."""
    read: Read = read_nothing
    """The reader of waiting messages."""


Decision = tuple[list[Event], list[Effect]]


def too_many(things: str, limit: int) -> Refused:
    """Return the refusal of one object more than a limit allows."""
    return Refused("amqp:resource-limit-exceeded", f"at most {limit} {things} ({things}_max)")


def check_size(text: str, what: str, *, bytes_max: int, limit: str) -> None:
    """Raise Refused with amqp:invalid-field for a text that is larger than a limit."""
    size = len(text.encode(errors="surrogatepass"))
    if size > bytes_max:
        raise Refused("amqp:invalid-field", f"{what} has {size} bytes, at most {bytes_max} ({limit})")


def signed(events: list[Event], by: str) -> list[Event]:
    """Return events with the user that caused them, empty for none, where they have a field for it."""
    if by:
        for event in events:
            if hasattr(event, "by"):
                event.by = by
    return events
