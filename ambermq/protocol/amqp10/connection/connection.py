"""A connection: bytes in, events and bytes out (transport, 2.2 to 2.4); one class for server and client.

Rule 1. `receive` never raises. A fault ends the scope that it belongs to: link, session or connection. The event of
        that end reports it.
Rule 2. The caller of a server decides about two events, Authenticating and Opened. Later input is held until then, so a
        peer may pipeline everything and still be refused.
Rule 3. After a close or a fault no input is processed. ConnectionClosed is the last event.
Rule 4. A frame of ours that the peer does not accept ends the connection, but not within `send`: a session or a link
        calls it between two of its states. Until the end of that input no further frame is sent.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from ambermq.protocol.amqp10.connection.channels import Channels
from ambermq.protocol.amqp10.connection.close_timer import CloseTimer
from ambermq.protocol.amqp10.connection.connection_role import ConnectionRole
from ambermq.protocol.amqp10.connection.end_frames import CLOSE_FOLLOWS, check_open, close_frame, open_frame
from ambermq.protocol.amqp10.connection.handshake import ClientHandshake, Handshake, ServerHandshake
from ambermq.protocol.amqp10.connection.idle_timeout import IdleTimer
from ambermq.protocol.amqp10.connection.input_stage import InputStage
from ambermq.protocol.amqp10.connection.sasl import SaslClient, SaslServer
from ambermq.protocol.amqp10.errors import FramingError, LocalError, SessionFault
from ambermq.protocol.amqp10.events import ConnectionClosed, Event, Opened
from ambermq.protocol.amqp10.framing.frame_reader import Frame
from ambermq.protocol.amqp10.framing.frames import AMQP_FRAME, AMQP_HEADER, EMPTY_FRAME, decode_frame_body, encode_frame
from ambermq.protocol.amqp10.framing.output_buffer import OutputBuffer
from ambermq.protocol.amqp10.framing.size_limit import fitted
from ambermq.protocol.amqp10.framing.transfer_recogniser import TRANSFER_CODE, Recogniser
from ambermq.protocol.amqp10.limits import ConnectionLimits
from ambermq.protocol.amqp10.link.link import Link
from ambermq.protocol.amqp10.memory_budget import MemoryAccount, MemoryBudget, memory_of
from ambermq.protocol.amqp10.performatives.base import Composite
from ambermq.protocol.amqp10.performatives.classes import Close, Error, Open
from ambermq.protocol.amqp10.session.frame_dispatch import SESSION_CODES, receive_decoded, receive_plain, refuse_long
from ambermq.protocol.amqp10.session.session import LINK_FRAME_COST, Session
from ambermq.protocol.amqp10.session.session_connection import OutputSession
from ambermq.protocol.amqp10.spec import MIN_MAX_FRAME_SIZE, AmqpCondition, ConnectionCondition
from ambermq.protocol.amqp10.state_tables import (
    CLOSING_STATES,
    CONNECTION_TABLE,
    OPEN_SENT_STATES,
    OPEN_UNSENT_STATES,
    ConnectionInput,
    ConnectionState,
    SessionState,
)
from ambermq.protocol.amqp10.types.decode import Buffer

__all__ = ["Connection"]

_UNLIMITED: Final = 1 << 62
# Module names, since the access to an enumeration member costs as much as a call.
_OPENED: Final = ConnectionState.OPENED
_MAPPED: Final = SessionState.MAPPED


class Connection:
    """One end of one AMQP connection.

    `sasl` is the offer of a server or the credentials of a client; None means no SASL. With `allow_bare` a server
    accepts a peer without SASL, too.
    """

    __slots__ = (
        *("_channels", "_close_timer", "_container_id", "_idle", "_input", "_sasl", "dirty", "events", "fault"),
        *("is_ended", "is_resting", "limits", "link_count", "links_by_name", "memory", "output", "overlong"),
        *("partial_bytes", "recogniser", "remote_frame_bytes_max", "remote_open", "reopened", "role", "state"),
        *("turn_cost", "turn_cost_max"),
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
        budget: MemoryBudget | None = None,
    ) -> None:
        self.role = role
        self.limits = limits
        self.state = ConnectionState.START
        self.remote_open: Open | None = None
        """The peer's open; None before it arrives."""
        self.remote_frame_bytes_max = MIN_MAX_FRAME_SIZE
        """The largest frame that the peer accepts; the minimum of the specification until its open."""
        self.is_ended = False
        """Whether ConnectionClosed was appended: the owner writes the rest of the output and closes the transport."""
        self.fault: Error | None = None
        """The peer's fault that ended the connection; None without one."""
        self.turn_cost = 0
        """What the frames of this turn have cost, without the transfers of runs that have no limit: a flow 1, an attach
        LINK_FRAME_COST."""
        self.turn_cost_max = _UNLIMITED
        """The cost at which a turn ends. An owner that sets it makes an empty read while the connection rests."""
        self.is_resting = False
        """Whether input is held until the owner's next, empty read."""
        self._container_id = container_id
        self._sasl = sasl
        handshake: Handshake = ClientHandshake(None, None)
        if role is ConnectionRole.SERVER:
            handshake = ServerHandshake(sasl if isinstance(sasl, SaslServer) else None, allow_bare=allow_bare)
        self.memory = MemoryAccount(MemoryBudget(0) if budget is None else budget)
        """What this connection makes its owner hold; without a budget it is counted in vain."""
        self._input = InputStage(self, handshake)
        # For sessions and links, which append here.
        self.events: list[Event] = []
        self.output = OutputBuffer()
        self.dirty: dict[OutputSession, None] = {}
        """The sessions to flush before the output is taken."""
        self.reopened: list[OutputSession] = []
        self.link_count = 0
        self.links_by_name: dict[tuple[str, bool], Link] = {}
        self.partial_bytes = 0
        self.recogniser: Recogniser | None = None
        """The recogniser for the next read; None if that begins within a frame, or after the end of a session."""
        self._channels = Channels(self, first_delivery_id)
        self._idle = IdleTimer(limits.idle_timeout_ms, now_ms)
        self._close_timer = CloseTimer(limits.close_ms)
        self.overlong = ""
        """The name of our performative that fits into no frame of the peer; the connection is about to fail for it."""

    # Input and output

    def receive(self, data: bytes | memoryview, now_ms: int) -> bool:
        """Process bytes of the peer, which may end anywhere in a frame. Never raises.

        Return whether events hold views of the memory of `data`: then the caller must not overwrite it.
        """
        idle = self._idle
        idle.now_ms = idle.received_ms = now_ms
        recogniser, size, position = self.recogniser, len(data), 0
        if recogniser is not None and size < self.limits.large_payload_bytes:
            # Most reads hold only frames like the last one: the recogniser takes them without cutting frames.
            data = bytes(data)
            position = recogniser.take_alike(data, 0, size)
            if position == size:
                if self.reopened:
                    self.report_reopened()
                return False
        return not self.is_ended and self._input.receive(data, position)

    def take_events(self) -> list[Event]:
        """Return the events since the last call, in order. The owner's answers may cause further events."""
        events = self.events
        self.events = []
        return events

    def take_output(self) -> list[Buffer]:
        """Return the output to write now, in order. The settlements of the tick leave as ranges."""
        if self.overlong:
            self.fail_overlong()
        if self.dirty:
            for session in self.dirty:
                session.flush()
            self.dirty.clear()
        output = self.output
        pieces = output.pieces
        if len(pieces) == 1 and not output.is_gated:
            # A message alone.
            output.taken_bytes += output.size
            output.pieces, output.size = [], 0
        else:
            pieces = output.take()
        if pieces:
            self._idle.sent_ms = self._idle.now_ms
        return pieces

    @property
    def output_bytes(self) -> int:
        """The size of the output, without the settlements of this tick."""
        return self.output.size

    @property
    def received_ms(self) -> int:
        """The time of the peer's last bytes, by the clock of `receive`."""
        return self._idle.received_ms

    @property
    def incomplete_bytes(self) -> int:
        """The size of the header or frame that the peer has not sent whole; 0 while its input waits for this end."""
        return self._input.incomplete_bytes

    @property
    def is_closing(self) -> bool:
        """Whether our close was sent, or the connection has ended."""
        return self.is_ended or self.state in CLOSING_STATES

    def surveyed_bytes(self) -> int:
        """Return an estimate of the memory that is counted by a survey: output, transfers and unsettled deliveries."""
        return self.output.size + sum(session.surveyed_bytes() for session in self._channels.all())

    def poll(self, now_ms: int) -> int | None:
        """Send a due heartbeat, or end an overdue connection; return the time of the next call, None for never."""
        idle = self._idle
        idle.now_ms = now_ms
        if self.state is ConnectionState.END:
            return None
        if idle.is_silent():
            silence = f"no bytes were received for {self.limits.idle_timeout_ms} ms (idle_timeout_ms)"
            self.fail(AmqpCondition.RESOURCE_LIMIT_EXCEEDED, silence)
            return None
        if self.state in CLOSING_STATES and self._close_timer.is_overdue(now_ms):
            silence = f"the close was not answered within {self.limits.close_ms} ms (close_ms)"
            self.end(ConnectionCondition.CONNECTION_FORCED, silence)
            return None
        if idle.is_due():
            self.output.add(EMPTY_FRAME)
            idle.sent_ms = now_ms
        return self._close_timer.sooner(idle.deadline_ms())

    def extend_deadlines(self, stall_ms: int, now_ms: int) -> None:
        """Extend the peer's deadlines by the time in which this process stood still: its bytes may lie unread."""
        idle = self._idle
        idle.received_ms = min(idle.received_ms + stall_ms, now_ms)
        self._close_timer.extend(stall_ms)

    # Calls of the owner

    @property
    def remote_container_id(self) -> str:
        """The peer's container id; empty before its open."""
        return "" if self.remote_open is None else self.remote_open.container_id

    def sessions(self) -> list[Session]:
        """Return the sessions that are not ended at both ends; for an ended connection the sessions that it had."""
        return self._channels.all()

    def challenge(self, data: bytes) -> None:
        """Answer Authenticating by a challenge. The held input is processed at once, which may append events."""
        self._input.challenge(data)

    def authenticated(self, ok: bool, data: bytes = b"") -> None:
        """Answer Authenticating; `data` is the additional data of the outcome.

        The held input is processed at once, which may append events.
        """
        self._input.authenticated(ok=ok, data=data)

    def accept(
        self,
        *,
        properties: dict[Any, Any] | None = None,
        offered_capabilities: Sequence[str] = (),
        desired_capabilities: Sequence[str] = (),
    ) -> None:
        """Answer Opened with our open. The held input is processed at once, which may append events."""
        if self.state is ConnectionState.OPEN_RECEIVED:
            self._send_open(None, properties, offered_capabilities, desired_capabilities)
            self._input.resume()

    def refuse(self, error: Error) -> None:
        """Answer Opened with an open that announces a close, and the close. ConnectionClosed follows the peer's."""
        if self.state is ConnectionState.OPEN_RECEIVED:
            self._send_late_open()
            self.close(error)
            self._input.resume()

    def open(
        self,
        hostname: str | None = None,
        *,
        properties: dict[Any, Any] | None = None,
        offered_capabilities: Sequence[str] = (),
        desired_capabilities: Sequence[str] = (),
    ) -> None:
        """Send the first frames of a client: SASL if configured, header, open. Further calls may follow at once."""
        sasl = None if isinstance(self._sasl, SaslServer) else self._sasl
        handshake = ClientHandshake(sasl, hostname)
        self._input.handshake = handshake
        if sasl is not None:
            self.output.is_gated = True
            self.output.lead(handshake.first_header)
        self.advance(ConnectionInput.SEND_HEADER)
        self.output.add(AMQP_HEADER)
        self._send_open(hostname, properties, offered_capabilities, desired_capabilities)

    def begin(self) -> Session:
        """Begin a session; SessionBegun reports the answer. Raises LocalError before the open or without a channel."""
        self.advance(ConnectionInput.SEND_FRAME)
        return self._channels.begin()

    def close(self, error: Error | None = None) -> None:
        """Close from our end. ConnectionClosed follows the peer's close, or at once if our open was not sent.

        A peer has `close_ms` for its answer, counted from the next `poll`.
        """
        if self.overlong:
            self.fail_overlong()
        if self.state is ConnectionState.END or self.state in CLOSING_STATES:
            return
        if self.state not in OPEN_SENT_STATES:
            if self.state in OPEN_UNSENT_STATES:
                self._send_late_open()
                self.output.add(close_frame(error, self.remote_frame_bytes_max))
            self._finish(error)
            return
        for session in self._channels.all():
            session.flush()
        self._channels.end()
        # No frame follows the close, not even a heartbeat.
        self._idle.follow(None)
        self.advance(ConnectionInput.SEND_CLOSE)
        self.output.add(close_frame(error, self.remote_frame_bytes_max))

    def lost(self) -> None:
        """End because the transport has ended; ConnectionClosed is appended if it was not."""
        if self.state is not ConnectionState.END:
            is_closing = self.state in CLOSING_STATES
            lost = Error(condition=ConnectionCondition.CONNECTION_FORCED, description="lost")
            self._finish(None if is_closing else lost)

    def release(self) -> None:
        """End as `lost` does, and free everything at once: cyclic garbage would wait for the collector.

        No event is appended for the owner, which drops the connection. Of all calls only `poll` may follow.
        """
        self.lost()
        self.memory.close()
        self._input.release()
        self._channels.release()
        self.events.clear()
        self.reopened.clear()
        self.links_by_name.clear()
        self.recogniser = None
        self.output = OutputBuffer()

    def report_reopened(self) -> None:
        """Append CreditChanged for the senders whose window opened in this read; only the input stage calls it."""
        for session in self.reopened:
            session.report_reopened()
        self.reopened.clear()

    def send(self, channel: int, performative: Composite) -> None:
        """Write a frame; only sessions and links call it."""
        if (self.state, ConnectionInput.SEND_FRAME) in CONNECTION_TABLE and not self.overlong:
            frame = self._fitted(channel, performative)
            if frame is None:
                self.overlong = performative.NAME
            else:
                self.output.add(frame)

    def fail_overlong(self) -> None:
        """End the connection because a frame of ours is too long for the peer; only the input stage calls it."""
        name, self.overlong = self.overlong, ""
        why = f"our {name} does not fit into max-frame-size {self.remote_frame_bytes_max}"
        self.fail(AmqpCondition.FRAME_SIZE_TOO_SMALL, why)

    def takes(self, performative: Composite) -> bool:
        """Return whether the peer accepts a frame of this length; only sessions and links call it."""
        return self._fitted(0, performative) is not None

    def _fitted(self, channel: int, performative: Composite) -> bytes | None:
        """Return a frame that the peer accepts, None if it is too long. Before its open a peer accepts any length."""
        if self.remote_open is None:
            return encode_frame(channel, performative)
        return fitted(channel, performative, self.remote_frame_bytes_max)

    # Frames of the peer

    def receive_frame(self, frame: Frame) -> int:
        """Process a whole frame, and the later frames like it; return the position after them.

        Only the input stage calls it. Raises AmqpError if the connection cannot go on.
        """
        data, position, body, frame_end, end, kind, channel = frame
        if kind != AMQP_FRAME:
            raise FramingError(f"a frame of type {kind} after the AMQP header, expected type {AMQP_FRAME}")
        if channel > self.limits.channel_max:
            raise FramingError(f"channel {channel} exceeds channel-max {self.limits.channel_max}")
        if body == frame_end:
            return frame_end
        # -1 if the descriptor does not have the short encoding.
        code = data[body + 2] if frame_end - body > 3 and data[body] == 0 and data[body + 1] == 0x53 else -1
        session = self._channels.by_channel.get(channel)
        if frame_end - body > self.limits.performative_bytes_max and code != TRANSFER_CODE:
            owner = session if self.state is _OPENED else None
            if refuse_long(owner, code, data, body, frame_end, bytes_max=self.limits.performative_bytes_max):
                return frame_end
        if type(data) is memoryview and code in {TRANSFER_CODE, -1}:
            self._input.is_kept = True
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

    def _receive_performative(self, performative: Composite, channel: int) -> None:
        """Process a performative of the connection or a session, or a misplaced one."""
        match performative:
            case Open():
                self._receive_open(performative, channel)
            case Close():
                self._receive_close(performative)
            case _:
                self.turn_cost += LINK_FRAME_COST
                self.advance(ConnectionInput.RECEIVE_FRAME)
                if self.state is not ConnectionState.CLOSE_SENT:
                    self._channels.receive(performative, channel)

    def _receive_open(self, remote: Open, channel: int) -> None:
        if channel != 0:
            raise FramingError(f"open on channel {channel}, expected channel 0")
        self.advance(ConnectionInput.RECEIVE_OPEN)
        check_open(remote)
        self.remote_open = remote
        self.memory.change(memory_of(remote))
        self.remote_frame_bytes_max = remote.max_frame_size
        self._idle.follow(remote.idle_time_out)
        if self.state is ConnectionState.CLOSE_SENT:
            return
        self._input.is_asking = self.role is ConnectionRole.SERVER
        self.events.append(Opened(remote))

    def _receive_close(self, close: Close) -> None:
        self.advance(ConnectionInput.RECEIVE_CLOSE)
        if self.state is ConnectionState.CLOSE_RECEIVED:
            self.output.add(encode_frame(0, Close()))
            self.advance(ConnectionInput.SEND_CLOSE)
        self._finish(close.error)

    # States

    def advance(self, given: ConnectionInput) -> None:
        """Change the state as the table says. Only parts of the connection call it.

        Raises FramingError for an input of the peer that the table does not list, LocalError for one of ours.
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
        frame = open_frame(
            self.limits,
            container_id=self._container_id,
            hostname=hostname,
            properties=properties,
            offered_capabilities=offered_capabilities,
            desired_capabilities=desired_capabilities,
        )
        self.output.add(frame)

    def fail(self, condition: str, description: str) -> None:
        """End because of the peer's fault, with a close after the headers; only parts of the connection call it.

        An open comes before a close (transport, 2.4.3): it is sent now if it was not.
        """
        if self.state in OPEN_UNSENT_STATES:
            self._send_late_open()
        if self.state in OPEN_SENT_STATES:
            error = Error(condition=condition, description=description)
            self.output.add(close_frame(error, self.remote_frame_bytes_max))
        self.end(condition, description)

    def _send_late_open(self) -> None:
        """Send the open that announces a close: the headers were exchanged, and no open was sent."""
        self._send_open(None, CLOSE_FOLLOWS, (), ())

    def end(self, condition: str, description: str) -> None:
        """End because of a fault, without a frame; only parts of the connection call it."""
        self.fault = Error(condition=condition, description=description)
        self._finish(self.fault)

    def _finish(self, error: Error | None) -> None:
        """End all sessions, drop the output after SASL, and append ConnectionClosed."""
        self.state = ConnectionState.END
        self.is_ended = True
        self.overlong = ""
        self.output.drop_gated()
        self._input.is_asking = self.is_resting = False
        self.dirty.clear()
        self._channels.end()
        self.events.append(ConnectionClosed(error))
