"""What the parts of a connection need of it: its channels and its input, each in a file of its own.

Rule 1: a part knows no more of its connection than this, so connection.py imports its parts, and not the other way
        round.
"""

from __future__ import annotations

from typing import Protocol

from ambermq.protocol.amqp10.framing.frame_reader import Frame
from ambermq.protocol.amqp10.performatives.classes import Open
from ambermq.protocol.amqp10.session.session_connection import SessionConnection
from ambermq.protocol.amqp10.state_tables import ConnectionInput, ConnectionState

__all__ = ["ParentConnection"]


class ParentConnection(SessionConnection, Protocol):
    """The connection that a part belongs to."""

    is_ended: bool
    """ConnectionClosed was appended."""
    remote_open: Open | None
    """The peer's open, once it came."""

    @property
    def state(self) -> ConnectionState:
        """Where it stands."""

    def advance(self, given: ConnectionInput) -> None:
        """Go where the table says. FramingError for an input of the peer that has no place."""

    def receive_frame(self, frame: Frame) -> int:
        """Take a whole frame, and what is like it behind; returns the position behind. AmqpError."""

    def tell_reopened(self) -> None:
        """Append CreditChanged for the senders whose window opened in this read."""

    def fail(self, condition: str, description: str) -> None:
        """End for the peer's fault, with a close where we have opened."""

    def end(self, condition: str, description: str) -> None:
        """End without a frame, for a fault."""
