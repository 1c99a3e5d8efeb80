"""What the parts of a session need of it: its links, its transfers and its dispositions.

Rule 1. A part uses only this protocol. So session.py imports its parts, and not the other way round.
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
        """The connection of the session."""

    @property
    def windows(self) -> FlowWindows:
        """The windows of the session."""

    @property
    def sent(self) -> DeliveryRing:
        """The sent deliveries that are not settled."""

    @property
    def received(self) -> DeliveryRing:
        """The received deliveries that are not settled."""

    def receive_flow(self, fields: list[int | bool | None]) -> None:
        """Process a flow, as its ten fields in wire order. Raises SessionFault for a handle without a link."""
