"""What the parts of a session need of it: its links, its transfers and its dispositions, each in a file of its own.

Rule 1: a part knows no more of its session than this, so session.py imports its parts, and not the other way round.
"""

from __future__ import annotations

from typing import Protocol

from ambermq.protocol.amqp10.link.link import Link
from ambermq.protocol.amqp10.link.link_session import LinkSession
from ambermq.protocol.amqp10.session.flow_windows import FlowWindows
from ambermq.protocol.amqp10.session.session_connection import OutputSession, SessionConnection
from ambermq.protocol.amqp10.session.unsettled import DeliveryRing

__all__ = ["ParentSession"]


class ParentSession(LinkSession[Link], OutputSession, Protocol):
    """The session that a part belongs to."""

    @property
    def connection(self) -> SessionConnection:
        """The connection that it belongs to."""

    @property
    def windows(self) -> FlowWindows:
        """Its windows."""

    @property
    def sent(self) -> DeliveryRing:
        """What we sent and is not settled."""

    @property
    def received(self) -> DeliveryRing:
        """What we received and is not settled."""

    def receive_flow(self, fields: list[int | bool | None]) -> None:
        """Take a flow, as its ten fields in the order of the wire. SessionFault for a handle without a link."""
