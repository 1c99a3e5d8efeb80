"""The way into a connection: headers, SASL, then frames, as long as nothing has to be answered first.

Rule 1: nothing is raised: a fault ends the connection.
Rule 2: while a question (Authenticating, Opened) is not answered, what comes is held unread, and only so much of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from protocol.errors import AmqpError, FramingError
from protocol.frames import SASL_FRAME, decode_frame_body
from protocol.handshake import Handshake, ServerHandshake
from protocol.reader import Frame, FrameReader
from protocol.spec import AmqpCondition
from protocol.tables import ConnectionInput, ConnectionState

if TYPE_CHECKING:
    from protocol.connection import Connection

__all__ = ["Intake"]


class Intake:
    """What one connection has not read yet, and how it is to be read."""

    __slots__ = ("_connection", "_reader", "handshake", "is_asking", "is_kept")

    def __init__(self, connection: Connection, handshake: Handshake) -> None:
        self._connection = connection
        self._reader = FrameReader(connection.limits.large_payload_bytes)
        self.handshake: Handshake | None = handshake
        """None once the AMQP headers are exchanged."""
        self.is_asking = False
        """A question was told and is not answered."""
        self.is_kept = False
        """Events hold views of what is being read."""

    def receive(self, data: bytes | memoryview) -> bool:
        """Read as far as may be; returns whether events hold views of `data`."""
        self.is_kept = False
        if not self.is_asking:
            self._reader.put(data)
            self._read()
        elif self._reader.hold(data) > self._connection.limits.held_bytes_max:
            self._fail_held()
        return self.is_kept

    def resume(self) -> None:
        """Read what was held, now that the question is answered."""
        self.is_asking = False
        self._reader.resume()
        self._read()

    def authenticated(self, *, ok: bool) -> None:
        """Answer the question who it is."""
        if not self.is_asking or not isinstance(self.handshake, ServerHandshake):
            return
        self._connection.output.add(self.handshake.authenticated(ok=ok))
        if ok:
            self.resume()
        else:
            self._connection.end(AmqpCondition.UNAUTHORIZED_ACCESS, "authentication failed")

    def _read(self) -> None:
        """Take headers and frames as long as there are whole ones and nothing has to be answered first."""
        connection, reader = self._connection, self._reader
        limits = connection.limits
        try:
            is_more = self.handshake is None or self._negotiate(self.handshake)
            while is_more and not self.is_asking and not connection.is_ended:
                frame = reader.frame(limits.frame_bytes_max)
                is_more = frame is not None and reader.skip(frame, connection.receive_frame(frame))
        except AmqpError as fault:
            connection.fail(fault.condition, fault.description)
        if connection.reopened:
            connection.tell_reopened()
        if reader.stop() > limits.held_bytes_max and self.is_asking:
            self._fail_held()

    def _negotiate(self, handshake: Handshake) -> bool:
        """Take protocol headers and SASL frames; returns whether frames of the connection may follow at once."""
        reader, limits = self._reader, self._connection.limits
        while self.handshake is not None and not self.is_asking and not self._connection.is_ended:
            if not handshake.is_sasl:
                if not self._receive_header(handshake):
                    return False
                continue
            frame = reader.frame(limits.sasl_frame_bytes_max)
            if frame is None:
                return False
            reader.skip(frame, self._receive_sasl(handshake, frame))
        return True

    def _receive_header(self, handshake: Handshake) -> bool:
        """Take a protocol header; returns whether it was there."""
        connection = self._connection
        try:
            header = self._reader.header()
            if header is None:
                handshake.check(self._reader.peek())
                return False
            answer = handshake.receive_header(header)
        except FramingError:
            connection.output.add(handshake.supported)
            raise
        if handshake.is_done:
            self.handshake = None
            connection.advance(ConnectionInput.RECEIVE_HEADER)
            if connection.state is ConnectionState.HEADER_RECEIVED:
                connection.advance(ConnectionInput.SEND_HEADER)
        if answer:
            connection.output.add(answer)
        return True

    def _receive_sasl(self, handshake: Handshake, frame: Frame) -> int:
        """Take a SASL frame; returns the position behind."""
        data, _, body, frame_end, _, kind, _ = frame
        if kind != SASL_FRAME or body == frame_end:
            raise FramingError(f"a frame of type {kind} within SASL")
        performative, _ = decode_frame_body(data, body, frame_end, SASL_FRAME)
        connection = self._connection
        answer, question = handshake.receive_frame(performative)
        connection.output.lead(answer)
        if question is not None:
            self.is_asking = True
            connection.events.append(question)
        elif handshake.failure is not None:
            connection.end(AmqpCondition.UNAUTHORIZED_ACCESS, handshake.failure)
        elif not handshake.is_sasl:
            connection.output.is_gated = False
        return frame_end

    def _fail_held(self) -> None:
        held_max = self._connection.limits.held_bytes_max
        self._connection.fail(AmqpCondition.RESOURCE_LIMIT_EXCEEDED, f"more than {held_max} bytes ahead of an answer")
