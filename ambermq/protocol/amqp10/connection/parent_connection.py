"""What the parts of a connection, its channels and its input stage, need of it.

Rule 1. A part uses only this protocol. So connection.py imports its parts, and not the other way round.
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
    overlong: str
    """The name of our performative that is too long for the peer; empty without one."""
    is_resting: bool
    """Whether the input is held, because a turn is used up."""
    turn_cost_max: int
    """The maximum of `turn_cost`."""
    remote_open: Open | None
    """The peer's open; None before it arrives."""

    @property
    def state(self) -> ConnectionState:
        """The state of the connection."""

    def advance(self, given: ConnectionInput) -> None:
        """Change the state as the table says. Raises FramingError for an input that the table does not list."""

    def receive_frame(self, frame: Frame) -> int:
        """Process a whole frame and the later frames like it; return the position after them. Raises AmqpError."""

    def report_reopened(self) -> None:
        """Append CreditChanged for the senders whose window opened in this read."""

    def fail_overlong(self) -> None:
        """End because a frame of ours is too long for the peer."""

    def fail(self, condition: str, description: str) -> None:
        """End because of the peer's fault, with a close if our open was sent."""

    def end(self, condition: str, description: str) -> None:
        """End because of a fault, without a frame."""
