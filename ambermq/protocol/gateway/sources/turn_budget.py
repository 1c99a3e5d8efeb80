"""What a link that takes nothing may send at a time, and what it waits for then."""

from dataclasses import dataclass
from enum import Enum, auto
from typing import final

__all__ = ["TurnBudget", "Wait"]


class Wait(Enum):
    """What a link waits for once it has had its turn."""

    TURN = auto()
    """The next turn: it has more to send."""
    PEER = auto()
    """Credit or window of its peer, or the answer to a question of its own; also: it has sent everything."""
    BODIES = auto()
    """Messages that are being read from the disk."""
    EVENTS = auto()
    """Events that are not durable yet."""


@final
@dataclass(slots=True)
class TurnBudget:
    """What may still be sent before others are looked after; all links of a turn share it."""

    messages: int
    size: int
    """In bytes of messages; the message that takes it below 0 is the last."""

    @property
    def is_over(self) -> bool:
        """Nothing more may be sent."""
        return self.messages <= 0 or self.size <= 0

    def take(self, messages: int, size: int) -> None:
        """Count what was sent."""
        self.messages -= messages
        self.size -= size
