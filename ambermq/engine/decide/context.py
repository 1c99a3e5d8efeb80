"""What a decision may depend on besides command and state, and what it comes to."""

from msgspec import Struct

from ambermq.engine.config import EngineConfig
from ambermq.engine.effects import Effect
from ambermq.engine.errors import Refused
from ambermq.engine.events import Event
from ambermq.engine.routing.router import Router

__all__ = ["Decision", "DecisionContext", "too_many"]


class DecisionContext(Struct, frozen=True):
    """When, where in the log, with how much room, within which limits."""

    now_us: int
    next_offset: int
    room_bytes: int
    """Bytes that publishing may still write."""
    config: EngineConfig
    router: Router
    """Derived from the state that is decided upon."""
    batch_bytes_max: int = 4 << 20
    """What the log writes as a whole: no record may be larger."""


Decision = tuple[list[Event], list[Effect]]


def too_many(things: str, limit: int) -> Refused:
    """Return the refusal of one thing more than a limit allows."""
    return Refused("amqp:resource-limit-exceeded", f"at most {limit} {things} ({things}_max)")
