"""What the gateway needs of the engine: the one way from a link to the state machine.

Rule 1: a link submits commands and asks for bodies; what comes back are effects, which `Gateway.carry_out` takes.
"""

from collections.abc import Sequence
from typing import Protocol

from ambermq.engine.commands import Command, CutThrough, Publish, Settle
from ambermq.engine.config import EngineConfig
from ambermq.engine.entries.entry import Entry
from ambermq.engine.entries.stored_message import Pieces, StoredMessage
from ambermq.engine.history.replay import Replay
from ambermq.engine.model.state import State
from ambermq.engine.time_budget import TimeBudget
from ambermq.protocol.amqp10.types.decode import Buffer

__all__ = ["EnginePort", "Hold"]


class Hold(Protocol):
    """What keeps messages readable that a compaction deletes."""

    def release(self) -> None:
        """End the hold."""


class EnginePort(Protocol):
    """The engine of one virtual host, as its gateway uses it."""

    @property
    def state(self) -> State:
        """The state of the virtual host."""

    @property
    def config(self) -> EngineConfig:
        """The limits of the engine."""

    @property
    def matching(self) -> TimeBudget:
        """The time for selectors in one turn of the browsing links."""

    @property
    def durable_end(self) -> int:
        """The offset after everything that is durable."""

    def submit(self, command: Command) -> None:
        """Queue a command for the next tick."""

    def publish(self, command: Publish) -> None:
        """Queue messages for the next tick; as `submit`."""

    def settle(self, command: Settle) -> None:
        """Queue a settlement for the next tick; as `submit`."""

    def set_credit(self, consumer: int, credit: int, *, draining: bool = False) -> None:
        """Set how many deliveries a consumer's link can take now."""

    def stop_cut_through(self, cut_through: CutThrough) -> None:
        """End the delivery of a message that arrives, which its link will not complete."""

    def hold(self) -> Hold:
        """Keep every message that is in the log now readable until the hold is released."""

    def messages(
        self, words: Sequence[int], entries: Sequence[Entry | None] | None
    ) -> list[Buffer | StoredMessage | None] | None:
        """Return the bodies for a browsing link; None where one must be read from the disk first."""

    def piece(self, message: Pieces, index: int) -> Buffer | None:
        """Return a piece of a large message; no bytes if it is damaged, None if it must be read from the disk first."""

    def replay(self, first: int) -> Replay:
        """Return a reader of the events from an offset on, for another thread."""
