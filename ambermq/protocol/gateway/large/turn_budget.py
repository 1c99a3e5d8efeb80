"""The budget of a turn: how much browsing links may send in it, and what a link waits for afterwards."""

from dataclasses import dataclass
from enum import Enum, auto
from typing import final

__all__ = ["TurnBudget", "Wait"]


class Wait(Enum):
    """What a link waits for after its turn."""

    TURN = auto()
    """The next turn: the link has more to send."""
    PEER = auto()
    """Credit or window of the peer, or the result of a job. Also for a link that has sent everything."""
    BODIES = auto()
    """Message bodies that are being read from the disk."""
    EVENTS = auto()
    """Events that are not durable."""


@final
@dataclass(slots=True)
class TurnBudget:
    """The messages and bytes that may still be sent in a turn; all links of the turn share them."""

    messages: int
    size: int
    """In bytes of messages; the message that takes it to 0 or below is the last."""

    @property
    def is_spent(self) -> bool:
        """Whether nothing more may be sent."""
        return self.messages <= 0 or self.size <= 0

    def end(self) -> None:
        """End the turn: the time for selectors is over."""
        self.messages = 0

    def spend(self, messages: int, size: int) -> None:
        """Subtract what was sent."""
        self.messages -= messages
        self.size -= size
