"""What a session needs of its connection.

Rule 1. A session uses only these protocols. So the package of connections imports that of sessions.
Rule 2. The protocols are for the type checker only; they add no call.
"""

from __future__ import annotations

from typing import Protocol

from ambermq.protocol.amqp10.framing.transfer_recogniser import Recogniser
from ambermq.protocol.amqp10.link.link import Link
from ambermq.protocol.amqp10.link.link_session import LinkConnection
from ambermq.protocol.amqp10.performatives.base import Composite

__all__ = ["OutputSession", "SessionConnection"]


class OutputSession(Protocol):
    """A session whose flush or report is pending."""

    def flush(self) -> None:
        """Write the output that is delayed to the end of the tick."""

    def report_reopened(self) -> None:
        """Append CreditChanged for the senders with credit: the window opened."""


class SessionConnection(LinkConnection, Protocol):
    """What a session needs of its connection."""

    link_count: int
    """The number of links of all sessions."""
    turn_cost: int
    """What the frames of this turn have cost, without the transfers of runs that have no limit."""
    recogniser: Recogniser | None
    """The recogniser for the next read."""

    @property
    def links_by_name(self) -> dict[tuple[str, bool], Link]:
        """The links of all sessions, by name and by whether we send."""

    @property
    def dirty(self) -> dict[OutputSession, None]:
        """The sessions to flush before the output is taken."""

    @property
    def reopened(self) -> list[OutputSession]:
        """The sessions whose window opened in this read."""

    def send(self, channel: int, performative: Composite) -> None:
        """Write a frame."""
