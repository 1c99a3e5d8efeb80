"""The sessions of one connection, by our channel and by the peer's (transport, 2.5.1 to 2.5.4).

Rule 1. A channel is free again when both ends have ended its session.
Rule 2. A frame on a channel without a session is a fault of the connection, since no smaller scope could take it.
"""

from __future__ import annotations

from ambermq.protocol.amqp10.connection.parent_connection import ParentConnection
from ambermq.protocol.amqp10.errors import FramingError, LocalError
from ambermq.protocol.amqp10.events import SessionBegun, SessionEnded
from ambermq.protocol.amqp10.performatives.base import Composite
from ambermq.protocol.amqp10.performatives.classes import Begin, End
from ambermq.protocol.amqp10.session.session import Session
from ambermq.protocol.amqp10.state_tables import SessionState

__all__ = ["Channels"]


class Channels:
    """The channels of one connection."""

    __slots__ = ("_connection", "_first_delivery_id", "_local", "by_channel")

    def __init__(self, connection: ParentConnection, first_delivery_id: int) -> None:
        self._connection = connection
        self._first_delivery_id = first_delivery_id
        self._local: dict[int, Session] = {}
        self.by_channel: dict[int, Session] = {}
        """The sessions by the peer's channel."""

    def all(self) -> list[Session]:
        """Return the sessions that are not ended at both ends."""
        return list(self._local.values())

    def begin(self) -> Session:
        """Begin a session from our end, and return it. Raises LocalError if no channel is free."""
        session = self._new()
        session.begin()
        return session

    def end(self) -> None:
        """End all sessions at once, because the connection ends. `all` still returns them."""
        for session in self._local.values():
            session.drop()
        self.by_channel = {}

    def release(self) -> None:
        """Drop the sessions of an ended connection, and the connection. No call but `all` may follow."""
        for session in self._local.values():
            session.release_parts()
        self._local = {}
        del self._connection

    def receive(self, performative: Composite, channel: int) -> None:
        """Process a begin or an end; ignore a frame for a session that we ended. Raises FramingError."""
        session = self.by_channel.get(channel)
        match performative:
            case Begin() if session is None:
                self._receive_begin(performative, channel)
            case Begin():
                raise FramingError(f"begin on channel {channel}, which is in use")
            case _ if session is None:
                raise FramingError(f"{performative.NAME} on channel {channel}, which has no session")
            case End():
                self._receive_end(session, performative, channel)
            case _:
                pass  # We have ended the session: its frames are ignored until the peer's end.

    def _receive_begin(self, begin: Begin, channel: int) -> None:
        if begin.remote_channel is None:
            try:
                session = self._new()
            except LocalError as full:
                raise FramingError(f"begin on channel {channel}: {full}") from full
            session.receive_begin(begin, channel)
            session.begin(channel)
        else:
            answered = self._local.get(begin.remote_channel)
            if answered is None or answered.remote_channel >= 0:
                raise FramingError(f"begin for channel {begin.remote_channel}, which awaits no begin")
            session = answered
            session.receive_begin(begin, channel)
        self.by_channel[channel] = session
        if session.state is SessionState.MAPPED:
            self._connection.events.append(SessionBegun(session))

    def _receive_end(self, session: Session, end: End, channel: int) -> None:
        del self.by_channel[channel]
        del self._local[session.channel]
        if session.receive_end():
            self._connection.events.append(SessionEnded(session, end.error))

    def _new(self) -> Session:
        remote = self._connection.remote_open
        channel = next(number for number in range(len(self._local) + 1) if number not in self._local)
        if remote is not None and channel > remote.channel_max:
            raise LocalError(f"channel {channel} exceeds the peer's channel-max {remote.channel_max}")
        session = Session(self._connection, channel, self._first_delivery_id)
        self._local[channel] = session
        return session
