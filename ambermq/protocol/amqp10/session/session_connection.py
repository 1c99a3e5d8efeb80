"""What a session needs of its connection.

Rule 1: a session knows no more of its connection than this, so the connection's room lies above the sessions'.
Rule 2: the protocols are for the type checker alone: attributes are read as they stand, and no call is added.
"""

from __future__ import annotations

from typing import Protocol

from ambermq.protocol.amqp10.framing.transfer_recogniser import Recogniser
from ambermq.protocol.amqp10.link.link import Link
from ambermq.protocol.amqp10.link.link_session import LinkConnection
from ambermq.protocol.amqp10.performatives.base import Composite

__all__ = ["OutputSession", "SessionConnection"]


class OutputSession(Protocol):
    """What a connection calls on a session that has asked for it."""

    def flush(self) -> None:
        """Write what waits for the end of the tick."""

    def tell_reopened(self) -> None:
        """Append CreditChanged for the senders with credit: the window opened."""


class SessionConnection(LinkConnection, Protocol):
    """What a session needs of its connection."""

    link_count: int
    """Links of all sessions."""
    recogniser: Recogniser | None
    """Is shown the next read."""

    @property
    def links_by_name(self) -> dict[tuple[str, bool], Link]:
        """The links of all sessions, by name and by whether we send."""

    @property
    def dirty(self) -> dict[OutputSession, None]:
        """Sessions to flush before the output is taken."""

    @property
    def reopened(self) -> list[OutputSession]:
        """Sessions whose window opened in this read."""

    def send(self, channel: int, performative: Composite) -> None:
        """Write a frame."""
