"""A connection: bytes in, events and bytes out (transport, 2.2 to 2.4); one class for server and client.

Rule 1: `receive` never raises. A fault ends the scope that it belongs to, here or below, and is told by the event of
        that end.
Rule 2: a server asks twice, by Authenticating and Opened; what came behind is kept unread until it is answered, so a
        peer may pipeline everything and still be refused.
Rule 3: after close or a fault nothing is read any more, and nothing is told after ConnectionClosed.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import Any, Final

from ambermq.protocol.amqp10.connection.channels import Channels
from ambermq.protocol.amqp10.connection.handshake import ClientHandshake, Handshake, ServerHandshake
from ambermq.protocol.amqp10.connection.idle_timeout import IdleTimer
from ambermq.protocol.amqp10.connection.input_stage import InputStage
from ambermq.protocol.amqp10.connection.sasl import SaslClient, SaslServer
from ambermq.protocol.amqp10.errors import ConnectionFault, FramingError, LocalError, SessionFault
from ambermq.protocol.amqp10.events import ConnectionClosed, Event, Opened
from ambermq.protocol.amqp10.framing.frame_reader import Frame
from ambermq.protocol.amqp10.framing.frames import (
    AMQP_FRAME,
    AMQP_HEADER,
    EMPTY_FRAME,
    decode_frame_body,
    encode_frame,
)
from ambermq.protocol.amqp10.framing.output_buffer import OutputBuffer
from ambermq.protocol.amqp10.framing.size_limit import fitted
from ambermq.protocol.amqp10.framing.transfer_recogniser import TRANSFER_CODE, Recogniser
from ambermq.protocol.amqp10.limits import ConnectionLimits
from ambermq.protocol.amqp10.link.link import Link
from ambermq.protocol.amqp10.performatives.base import Composite
from ambermq.protocol.amqp10.performatives.classes import Close, Error, Open
from ambermq.protocol.amqp10.session.frame_dispatch import SESSION_CODES, receive_decoded, receive_plain
from ambermq.protocol.amqp10.session.session import Session
from ambermq.protocol.amqp10.session.session_connection import OutputSession
from ambermq.protocol.amqp10.spec import MIN_MAX_FRAME_SIZE, AmqpCondition, ConnectionCondition
from ambermq.protocol.amqp10.state_tables import CONNECTION_TABLE, ConnectionInput, ConnectionState, SessionState
from ambermq.protocol.amqp10.types.decode import Buffer

__all__ = ["Connection", "ConnectionRole"]

_OPEN_SENT: Final = frozenset(
    {
        ConnectionState.OPEN_PIPE,
        ConnectionState.OPEN_SENT,
        ConnectionState.OPENED,
    }
)
_CLOSING: Final = frozenset(
    {
        ConnectionState.OPEN_CLOSE_PIPE,
        ConnectionState.CLOSE_PIPE,
        ConnectionState.CLOSE_SENT,
    }
)
_FAILED_TO_ESTABLISH: Final = "amqp:connection-establishment-failed"
# Names of their own, since a look into an enumeration costs as much as a call.
_OPENED: Final = ConnectionState.OPENED
_MAPPED: Final = SessionState.MAPPED


class ConnectionRole(IntEnum):
    """Who speaks first: the client does."""

    SERVER = 0
    CLIENT = 1


class Connection:
    """One end of one AMQP connection.

    sasl: what a server offers, or who a client is; None: no SASL. allow_bare: a server lets in without it too.
    """

    __slots__ = (
        "_channels",
        "_close_by_ms",
        "_container_id",
        "_idle",
        "_intake",
        "_sasl",
        "dirty",
        "events",
        "is_ended",
        "limits",
        "link_count",
        "links_by_name",
        "output",
        "partial_bytes",
        "recogniser",
        "remote_frame_bytes_max",
        "remote_open",
        "reopened",
        "role",
        "state",
    )

    def __init__(
        self,
        role: ConnectionRole,
        limits: ConnectionLimits,
        *,
        now_ms: int,
        container_id: str = "",
        sasl: SaslServer | SaslClient | None = None,
        allow_bare: bool = True,
        first_delivery_id: int = 0,
    ) -> None:
        self.role = role
        self.limits = limits
        self.state = ConnectionState.START
        self.remote_open: Open | None = None
        """The peer's open, once it came."""
        self.remote_frame_bytes_max = MIN_MAX_FRAME_SIZE
        """The largest frame that the peer takes; the spec's minimum until its open."""
        self.is_ended = False
        """ConnectionClosed was told: write what take_output still has, then hang up."""
        self._container_id = container_id
        self._sasl = sasl
        handshake: Handshake = ClientHandshake(None, None)
        if role is ConnectionRole.SERVER:
            handshake = ServerHandshake(sasl if isinstance(sasl, SaslServer) else None, allow_bare=allow_bare)
        self._intake = InputStage(self, handshake)
        # Of the protocol: sessions and links write here.
        self.events: list[Event] = []
        self.output = OutputBuffer()
        self.dirty: dict[OutputSession, None] = {}
        """Sessions to flush before the output is taken."""
        self.reopened: list[OutputSession] = []
        self.link_count = 0
        self.links_by_name: dict[tuple[str, bool], Link] = {}
        self.partial_bytes = 0
        self.recogniser: Recogniser | None = None
        """Is shown the next read; None where that begins within a frame, or a session has ended since."""
        self._channels = Channels(self, first_delivery_id)
        self._idle = IdleTimer(limits.idle_timeout_ms, now_ms)
        self._close_by_ms: int | None = None

    # What comes and goes

    def receive(self, data: bytes | memoryview, now_ms: int) -> bool:
        """Take bytes of the peer, cut anywhere. Never raises.

        Returns True when events hold views of the memory of `data`, which must then not be written again.
        """
        idle = self._idle
        idle.now_ms = idle.heard_ms = now_ms
        recogniser, size, position = self.recogniser, len(data), 0
        if recogniser is not None and size < self.limits.large_payload_bytes:
            # Most reads are wholly like what came before: no frames are cut from them.
            data = bytes(data)
            position = recogniser.take_alike(data, 0, size)
            if position == size:
                if self.reopened:
                    self.tell_reopened()
                return False
        return not self.is_ended and self._intake.receive(data, position)

    def take_events(self) -> list[Event]:
        """Hand out what happened since the last call, in order; answers may bring more."""
        events = self.events
        self.events = []
        return events

    def take_output(self) -> list[Buffer]:
        """Hand out what to write now, in order; settlements of the tick have become ranges."""
        if self.dirty:
            for session in self.dirty:
                session.flush()
            self.dirty.clear()
        output = self.output
        pieces = output.pieces
        if len(pieces) == 1 and not output.is_gated:
            # A message alone.
            output.pieces, output.size = [], 0
        else:
            pieces = output.take()
        if pieces:
            self._idle.spoke_ms = self._idle.now_ms
        return pieces

    @property
    def output_bytes(self) -> int:
        """The bytes that wait to be taken, settlements of this tick aside."""
        return self.output.size

    def poll(self, now_ms: int) -> int | None:
        """Do what time asks for; returns when to call again at the latest, None: never."""
        idle = self._idle
        idle.now_ms = now_ms
        if self.state is ConnectionState.END:
            return None
        if idle.is_silent():
            silence = f"nothing came for {self.limits.idle_timeout_ms} ms"
            self.fail(AmqpCondition.RESOURCE_LIMIT_EXCEEDED, silence)
            return None
        if self.state in _CLOSING and self._is_overdue(now_ms):
            silence = f"our close was not answered for {self.limits.close_ms} ms"
            self.end(ConnectionCondition.CONNECTION_FORCED, silence)
            return None
        if idle.is_due():
            self.output.add(EMPTY_FRAME)
            idle.spoke_ms = now_ms
        return _sooner(idle.deadline_ms(), self._close_by_ms)

    def excuse(self, lost_ms: int, now_ms: int) -> None:
        """Do not count the time in which we stood still: what the peer has sent meanwhile may lie unread."""
        idle = self._idle
        idle.heard_ms = min(idle.heard_ms + lost_ms, now_ms)
        if self._close_by_ms is not None:
            self._close_by_ms += lost_ms

    # What its owner calls

    @property
    def remote_container_id(self) -> str:
        """The peer's container id; empty until its open."""
        return "" if self.remote_open is None else self.remote_open.container_id

    def sessions(self) -> list[Session]:
        """List the sessions that are not ended at both ends; of an ended connection those that it had."""
        return self._channels.all()

    def authenticated(self, ok: bool) -> None:
        """Answer Authenticating. What waited behind is read at once, so there may be new events."""
        self._intake.authenticated(ok=ok)

    def accept(
        self,
        *,
        properties: dict[Any, Any] | None = None,
        offered_capabilities: Sequence[str] = (),
        desired_capabilities: Sequence[str] = (),
    ) -> None:
        """Answer Opened with our open. What waited behind is read at once, so there may be new events."""
        if self.state is ConnectionState.OPEN_RECEIVED:
            self._send_open(None, properties, offered_capabilities, desired_capabilities)
            self._intake.resume()

    def refuse(self, error: Error) -> None:
        """Answer Opened with an open that says so, and a close; ConnectionClosed follows when the peer closes too."""
        if self.state is ConnectionState.OPEN_RECEIVED:
            self._send_open(None, {_FAILED_TO_ESTABLISH: True}, (), ())
            self.close(error)
            self._intake.resume()

    def open(
        self,
        hostname: str | None = None,
        *,
        properties: dict[Any, Any] | None = None,
        offered_capabilities: Sequence[str] = (),
        desired_capabilities: Sequence[str] = (),
    ) -> None:
        """Begin to speak, as a client: SASL if asked for, header, open; what follows may be called at once."""
        sasl = self._sasl if isinstance(self._sasl, SaslClient) else None
        handshake = ClientHandshake(sasl, hostname)
        self._intake.handshake = handshake
        if sasl is not None:
            self.output.is_gated = True
            self.output.lead(handshake.first_header)
        self.advance(ConnectionInput.SEND_HEADER)
        self.output.add(AMQP_HEADER)
        self._send_open(hostname, properties, offered_capabilities, desired_capabilities)

    def begin(self) -> Session:
        """Begin a session; SessionBegun tells the peer's answer. LocalError without open, or without a free channel."""
        self.advance(ConnectionInput.SEND_FRAME)
        return self._channels.begin()

    def close(self, error: Error | None = None) -> None:
        """Close from our side; ConnectionClosed follows when the peer closes, or at once where we had not opened.

        A peer that does not answer is given `close_ms` from the next `poll`.
        """
        if self.state is ConnectionState.END or self.state in _CLOSING:
            return
        if self.state not in _OPEN_SENT:
            self._finish(error)
            return
        for session in self._channels.all():
            session.flush()
        self._channels.end()
        self.advance(ConnectionInput.SEND_CLOSE)
        self._send_close(error)

    def lost(self) -> None:
        """Take the end of the transport; ConnectionClosed is told if it was not."""
        if self.state is not ConnectionState.END:
            error = (
                None
                if self.state in _CLOSING
                else Error(condition=ConnectionCondition.CONNECTION_FORCED, description="lost")
            )
            self._finish(error)

    def tell_reopened(self) -> None:
        """Tell the senders whose window opened in this read; of the protocol, not for owners."""
        for session in self.reopened:
            session.tell_reopened()
        self.reopened.clear()

    def send(self, channel: int, performative: Composite) -> None:
        """Write a frame; of the protocol, not for owners."""
        if (self.state, ConnectionInput.SEND_FRAME) in CONNECTION_TABLE:
            frame = self._fitted(channel, performative)
            if frame is None:
                why = f"our {performative.NAME} is longer than the {self.remote_frame_bytes_max} bytes of a frame"
                self.fail(AmqpCondition.FRAME_SIZE_TOO_SMALL, why)
            else:
                self.output.add(frame)

    def takes(self, performative: Composite) -> bool:
        """Tell whether the peer takes a frame as long as this one; of the protocol, not for owners."""
        return self._fitted(0, performative) is not None

    def _fitted(self, channel: int, performative: Composite) -> bytes | None:
        """Write a frame as the peer takes it, None where it cannot; before its open it takes whatever we say."""
        if self.remote_open is None:
            return encode_frame(channel, performative)
        return fitted(channel, performative, self.remote_frame_bytes_max)

    # What comes, frame by frame

    def receive_frame(self, frame: Frame) -> int:
        """Take a whole frame, and transfers or dispositions like it behind; returns the position behind.

        Of the protocol. AmqpError when the connection cannot go on.
        """
        data, position, body, frame_end, end, kind, channel = frame
        if kind != AMQP_FRAME:
            raise FramingError(f"a frame of type {kind} behind the AMQP header")
        if channel > self.limits.channel_max:
            raise FramingError(f"channel {channel} where channel-max is {self.limits.channel_max}")
        if body == frame_end:
            return frame_end
        # -1 where the descriptor is not written the short way.
        code = data[body + 2] if frame_end - body > 3 and data[body] == 0 and data[body + 1] == 0x53 else -1
        if frame_end - body > self.limits.performative_bytes_max and code != TRANSFER_CODE:
            self._check_size(data, body, frame_end)
        if type(data) is memoryview and code in {TRANSFER_CODE, -1}:
            self._intake.is_kept = True
        session = self._channels.by_channel.get(channel)
        if session is None or self.state is not _OPENED or session.state is not _MAPPED:
            self._receive_performative(decode_frame_body(data, body, frame_end)[0], channel)
            return frame_end
        try:
            if code == TRANSFER_CODE:
                return session.incoming.receive(data, position, body, frame_end, end)
            if code in SESSION_CODES:
                return receive_plain(session, code, data, position, body, frame_end, end)
            performative, _ = decode_frame_body(data, body, frame_end)
            if performative.CODE in SESSION_CODES:
                receive_decoded(session, performative, data, position, body, frame_end)
            else:
                self._receive_performative(performative, channel)
        except SessionFault as fault:
            session.fail(fault.condition, fault.description)
        return frame_end

    def _check_size(self, data: Buffer, body: int, frame_end: int) -> None:
        """Refuse a large frame that is no transfer."""
        performative, _ = decode_frame_body(data, body, frame_end)
        if performative.CODE != TRANSFER_CODE:
            raise ConnectionFault(
                AmqpCondition.RESOURCE_LIMIT_EXCEEDED, f"{performative.NAME} of {frame_end - body} bytes"
            )

    def _receive_performative(self, performative: Composite, channel: int) -> None:
        """Take what moves the connection or a session, or what comes where it has no place."""
        match performative:
            case Open():
                self._receive_open(performative, channel)
            case Close():
                self._receive_close(performative)
            case _:
                self.advance(ConnectionInput.RECEIVE_FRAME)
                if self.state is not ConnectionState.CLOSE_SENT:
                    self._channels.receive(performative, channel)

    def _receive_open(self, remote: Open, channel: int) -> None:
        if channel != 0:
            raise FramingError(f"open on channel {channel}")
        self.advance(ConnectionInput.RECEIVE_OPEN)
        if remote.max_frame_size < MIN_MAX_FRAME_SIZE:
            raise ConnectionFault(AmqpCondition.INVALID_FIELD, f"max-frame-size {remote.max_frame_size} is below 512")
        self.remote_open = remote
        self.remote_frame_bytes_max = remote.max_frame_size
        self._idle.follow(remote.idle_time_out)
        if self.state is ConnectionState.CLOSE_SENT:
            return
        self._intake.is_asking = self.role is ConnectionRole.SERVER
        self.events.append(Opened(remote))

    def _receive_close(self, close: Close) -> None:
        self.advance(ConnectionInput.RECEIVE_CLOSE)
        if self.state is ConnectionState.CLOSE_RECEIVED:
            self.output.add(encode_frame(0, Close()))
            self.advance(ConnectionInput.SEND_CLOSE)
        self._finish(close.error)

    # Moving

    def _is_overdue(self, now_ms: int) -> bool:
        """Whether the answer to our close is; its time begins at the first look, since `close` is told no time."""
        if self._close_by_ms is None:
            self._close_by_ms = now_ms + self.limits.close_ms
        return now_ms >= self._close_by_ms

    def advance(self, given: ConnectionInput) -> None:
        """Go where the table says; if nowhere, FramingError for an input of the peer, LocalError for ours.

        Of the protocol, not for owners.
        """
        state = CONNECTION_TABLE.get((self.state, given))
        if state is None:
            fault = FramingError if given.name.startswith("RECEIVE") else LocalError
            raise fault(f"{given.name} in connection state {self.state.name}")
        self.state = state

    def _send_open(
        self,
        hostname: str | None,
        properties: dict[Any, Any] | None,
        offered_capabilities: Sequence[str],
        desired_capabilities: Sequence[str],
    ) -> None:
        self.advance(ConnectionInput.SEND_OPEN)
        limits = self.limits
        performative = Open(
            container_id=self._container_id,
            hostname=hostname,
            max_frame_size=limits.frame_bytes_max,
            channel_max=limits.channel_max,
            idle_time_out=limits.idle_timeout_ms // 2 or None,
            offered_capabilities=tuple(offered_capabilities),
            desired_capabilities=tuple(desired_capabilities),
            properties=properties,
        )
        self.output.add(encode_frame(0, performative))

    def fail(self, condition: str, description: str) -> None:
        """End for the peer's fault, with a close where we have opened, silently otherwise; of the protocol."""
        if self.state in _OPEN_SENT:
            self._send_close(Error(condition=condition, description=description))
        self.end(condition, description)

    def _send_close(self, error: Error | None) -> None:
        frame = fitted(0, Close(error=error), self.remote_frame_bytes_max)
        assert frame is not None, "a condition alone always fits"
        self.output.add(frame)

    def end(self, condition: str, description: str) -> None:
        """End without a word, for a fault; of the protocol."""
        self._finish(Error(condition=condition, description=description))

    def _finish(self, error: Error | None) -> None:
        """Forget what was kept, and tell the end."""
        self.state = ConnectionState.END
        self.is_ended = True
        self.output.drop_gated()
        self._intake.is_asking = False
        self.dirty.clear()
        self._channels.end()
        self.events.append(ConnectionClosed(error))


def _sooner(one_ms: int | None, other_ms: int | None) -> int | None:
    """Return the earlier of two times, where None is never."""
    if one_ms is None or other_ms is None:
        return other_ms if one_ms is None else one_ms
    return min(one_ms, other_ms)
