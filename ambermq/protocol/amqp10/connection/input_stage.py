"""The input of a connection: headers, SASL, then frames.

Rule 1. No call raises: a fault ends the connection.
Rule 2. While the question Authenticating or Opened is open, the input is held unread, up to `held_bytes_max`.
Rule 3. When the frames of a read have used up the connection's turn, the rest of the input is held: the owner does not
        read meanwhile, and continues the input by an empty read, in a later iteration of its event loop.
"""

from __future__ import annotations

from ambermq.protocol.amqp10.connection.handshake import Handshake, ServerHandshake
from ambermq.protocol.amqp10.connection.parent_connection import ParentConnection
from ambermq.protocol.amqp10.errors import AmqpError, FramingError
from ambermq.protocol.amqp10.framing.frame_reader import Frame, FrameReader
from ambermq.protocol.amqp10.framing.frames import SASL_FRAME, decode_frame_body
from ambermq.protocol.amqp10.spec import AmqpCondition
from ambermq.protocol.amqp10.state_tables import ConnectionInput, ConnectionState

__all__ = ["InputStage"]


class InputStage:
    """The unread input of one connection, and what it is expected to be."""

    __slots__ = ("_connection", "_held_bytes", "_reader", "handshake", "is_asking", "is_kept")

    def __init__(self, connection: ParentConnection, handshake: Handshake) -> None:
        self._connection = connection
        self._reader = FrameReader(connection.limits.large_payload_bytes)
        self._held_bytes = 0
        """The unread input, as the account of the connection counts it."""
        self.handshake: Handshake | None = handshake
        """None once the AMQP headers are exchanged."""
        self.is_asking = False
        """A question was appended and is not answered."""
        self.is_kept = False
        """Whether events hold views of the current read."""

    def receive(self, data: bytes | memoryview, position: int = 0) -> bool:
        """Process `data` from `position`, up to a question. Return whether events hold views of `data`."""
        self.is_kept = False
        connection, reader = self._connection, self._reader
        limits = connection.limits
        if connection.is_resting:
            self._count(reader.hold(data))
            if len(data):
                return False
            connection.is_resting = False
            data = reader.release()
        connection.turn_cost = 0
        if self.is_asking:
            held_bytes = reader.hold(data)
            self._count(held_bytes)
            if held_bytes > limits.held_bytes_max:
                self._fail_held()
            return False
        reader.put(data, position)
        try:
            if self.handshake is not None:
                self._negotiate(self.handshake)
            while (
                self.handshake is None
                and reader.position < reader.end
                and not self.is_asking
                and not connection.is_ended
            ):
                if connection.turn_cost >= connection.turn_cost_max:
                    connection.is_resting = True
                    break
                frame = reader.frame(limits.frame_bytes_max)
                if frame is None:
                    break
                position = connection.receive_frame(frame)
                if connection.overlong:
                    connection.fail_overlong()
                if position != frame[3]:
                    reader.skip(frame, position)
        except AmqpError as fault:
            connection.fail(fault.condition, fault.description)
        if connection.reopened:
            connection.report_reopened()
        kept = reader.stop()
        if connection.is_ended:
            reader.drop()
            kept = 0
        if kept != self._held_bytes:
            self._count(kept)
        if kept:
            # The next read begins in the middle of a frame.
            connection.recogniser = None
        if kept > limits.held_bytes_max and self.is_asking:
            self._fail_held()
        return self.is_kept

    def _count(self, held_bytes: int) -> None:
        """Count the unread input in the account of the connection."""
        self._connection.memory.change(held_bytes - self._held_bytes)
        self._held_bytes = held_bytes

    @property
    def incomplete_bytes(self) -> int:
        """The unread input that is less than a header or a frame."""
        return 0 if self.is_asking or self._connection.is_resting else self._held_bytes

    def resume(self) -> None:
        """Process the held input, after the answer to a question."""
        self.is_asking = False
        self.receive(self._reader.release())

    def release(self) -> None:
        """Drop the unread input and the connection: both are freed at once. No call may follow."""
        self._reader.drop()
        self.handshake = None
        del self._connection

    def challenge(self, data: bytes) -> None:
        """Answer the question Authenticating by a challenge."""
        if self.is_asking and isinstance(self.handshake, ServerHandshake):
            self._connection.output.add(self.handshake.challenge(data))
            self.resume()

    def authenticated(self, *, ok: bool, data: bytes) -> None:
        """Answer the question Authenticating by an outcome."""
        if not self.is_asking or not isinstance(self.handshake, ServerHandshake):
            return
        self._connection.output.add(self.handshake.authenticated(ok=ok, data=data))
        if ok:
            self.resume()
        else:
            self._connection.end(AmqpCondition.UNAUTHORIZED_ACCESS, "authentication failed")

    def _negotiate(self, handshake: Handshake) -> None:
        """Process protocol headers and SASL frames, until AMQP frames follow or the input ends."""
        reader, limits = self._reader, self._connection.limits
        while self.handshake is not None and not self.is_asking and not self._connection.is_ended:
            if not handshake.is_sasl:
                if not self._receive_header(handshake):
                    break
                continue
            frame = reader.frame(limits.sasl_frame_bytes_max)
            if frame is None:
                break
            self._receive_sasl(handshake, frame)

    def _receive_header(self, handshake: Handshake) -> bool:
        """Process a protocol header; return False if the input holds less than one."""
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

    def _receive_sasl(self, handshake: Handshake, frame: Frame) -> None:
        """Process a SASL frame."""
        data, _, body, frame_end, _, kind, _ = frame
        if kind != SASL_FRAME or body == frame_end:
            raise FramingError(f"a frame of type {kind} during SASL, expected a SASL frame with a body")
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
            connection.output.ungate()

    def _fail_held(self) -> None:
        held_max = self._connection.limits.held_bytes_max
        why = f"more than {held_max} bytes before the answer (held_bytes_max)"
        self._connection.fail(AmqpCondition.RESOURCE_LIMIT_EXCEEDED, why)
