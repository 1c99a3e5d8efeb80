"""AMQP inside of WebSocket (OASIS WebSocket binding of AMQP): a layer between a transport and a connection.

    upgrade request -> 101 with subprotocol amqp -> binary messages, whose bytes are the stream of AMQP

Rule 1. A message is passed on as it arrives, so its claimed length costs no memory. Text ends the connection.
Rule 2. Extensions are not offered: a compressed message may be much larger than its bytes.
Rule 3. A web page may connect only if its origin is configured. Otherwise any page in a browser of this machine would
        reach a broker without users.
Rule 4. A ping is answered only while little output waits. A peer that sends pings and reads nothing costs no memory.
Rule 5. One turn of the event loop processes a bounded number of frames: a read may hold ten thousand of no bytes. The
        rest waits as bytes, and the stream is not read meanwhile.
"""

import asyncio
from collections.abc import Iterable, Iterator
from typing import Any, Final, cast, final

from wsproto import ConnectionType, WSConnection
from wsproto.connection import ConnectionState
from wsproto.events import (
    AcceptConnection,
    BytesMessage,
    CloseConnection,
    Event,
    Ping,
    Pong,
    RejectConnection,
    RejectData,
    Request,
    TextMessage,
)
from wsproto.frame_protocol import CloseReason
from wsproto.utilities import LocalProtocolError, RemoteProtocolError

__all__ = ["SUBPROTOCOLS", "WebSocketTransport"]

SUBPROTOCOLS: Final = ("amqp", "AMQPWSB10")
"""The subprotocol of the binding, and that of an earlier draft, which SDKs still use."""
_PONG_OUTPUT_MAX: Final = 64 << 10
"""The unsent output above which pings are not answered."""
_HEADERS_BYTES_MAX: Final = 16 << 10
"""The bytes of an upgrade request."""
_EVERY_ORIGIN: Final = "*"
_TURN_EVENTS_MAX: Final = 256
"""The frames, or parts of frames, of a turn: some milliseconds."""


@final
class WebSocketTransport(asyncio.Protocol, asyncio.Transport):
    """The protocol of a byte stream with WebSocket, and the transport of the AMQP connection inside of it."""

    def __init__(self, inner: asyncio.BufferedProtocol, *, origins: tuple[str, ...], message_bytes_max: int) -> None:
        super().__init__()
        self._inner = inner
        self._origins = origins
        self._message_bytes_max = message_bytes_max
        self._message_bytes = self._request_bytes = 0
        self._websocket = WSConnection(ConnectionType.SERVER)
        self._is_open = self._is_closing = self._is_paused = False
        self._is_resting = False
        """Whether the rest of the input waits for the next turn."""
        self._events: Iterator[Event] = iter(())
        """The events of the input, which is parsed when they are taken."""
        self._outer: asyncio.Transport
        self.opened: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        """Set after the upgrade, with an empty text, or with the reason why it failed."""

    # The protocol of the byte stream.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin to wait for the upgrade request."""
        self._outer = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        """Process bytes of the stream."""
        if self._is_closing:
            return
        if not self._is_open:
            self._request_bytes += len(data)
            if self._request_bytes > _HEADERS_BYTES_MAX:
                self._fail(f"an upgrade request of more than {_HEADERS_BYTES_MAX} bytes")
                return
        try:
            self._websocket.receive_data(data)
        except (RemoteProtocolError, UnicodeError) as error:
            # The library decodes some headers without a look at their bytes.
            self._reject(error)
            return
        self._take_events()

    def eof_received(self) -> bool:
        """Close the stream: the peer sends no more bytes."""
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        """End the connection inside."""
        self._is_closing = True
        self._settle("the peer closed the connection before the upgrade")
        if self._is_open:
            self._inner.connection_lost(exc)

    def pause_writing(self) -> None:
        """Pass on that the peer does not read."""
        if self._is_open:
            self._inner.pause_writing()

    def resume_writing(self) -> None:
        """Pass on that the peer reads again."""
        if self._is_open:
            self._inner.resume_writing()

    def _take_events(self) -> None:
        """Process the input until its end, until the connection does not read, or until the turn is over."""
        for _ in range(_TURN_EVENTS_MAX):
            if self._is_paused or self._is_closing:
                return
            event = self._next_event()
            if event is None:
                return
            self._take(event)
        if not self._is_paused and not self._is_closing:
            self._is_resting = True
            self._outer.pause_reading()
            asyncio.get_running_loop().call_soon(self._resume)

    def _next_event(self) -> Event | None:
        """Return the next event of the input; None if there is none, and after a violation of the protocol."""
        try:
            event = next(self._events, None)
            if event is None:
                self._events = self._websocket.events()
                event = next(self._events, None)
        except RemoteProtocolError as error:
            self._reject(error)
            return None
        return event

    def _take(self, event: Event) -> None:
        match event:
            case BytesMessage(data=data):
                self._receive(data, is_last=event.message_finished)
            case Request():
                self._accept(event)
            case Ping():
                if self._outer.get_write_buffer_size() <= _PONG_OUTPUT_MAX:
                    self._send(event.response())
            case TextMessage():
                self._fail("a text message, expected binary messages", CloseReason.UNSUPPORTED_DATA)
            case CloseConnection():
                if self._websocket.state is ConnectionState.REMOTE_CLOSING:
                    self._send(event.response())
                self._is_closing = True
                self._outer.close()
            case Pong():
                pass

    def _receive(self, data: bytes | bytearray, *, is_last: bool) -> None:
        """Pass bytes of a message to the connection inside, in parts that fit into its buffer."""
        self._message_bytes += len(data)
        if self._message_bytes > self._message_bytes_max:
            why = f"a message of more than {self._message_bytes_max} bytes (websocket_message_bytes_max)"
            self._fail(why, CloseReason.MESSAGE_TOO_BIG)
            return
        if is_last:
            self._message_bytes = 0
        rest = memoryview(data)
        while rest and not self._outer.is_closing():
            buffer = memoryview(self._inner.get_buffer(len(rest)))
            size = min(len(buffer), len(rest))
            buffer[:size] = rest[:size]
            self._inner.buffer_updated(size)
            rest = rest[size:]

    def _accept(self, request: Request) -> None:
        origin = next(
            (value.decode("ascii", "replace") for name, value in request.extra_headers if name == b"origin"), ""
        )
        if origin and origin not in self._origins and _EVERY_ORIGIN not in self._origins:
            self._refuse(403, f"the origin {origin!r:.80} is not in websocket_origins")
            return
        chosen = next((one for one in SUBPROTOCOLS if one in request.subprotocols), None)
        if chosen is None:
            self._refuse(400, "the request does not offer the subprotocol amqp")
            return
        self._send(AcceptConnection(subprotocol=chosen))
        self._is_open = True
        self._inner.connection_made(self)
        self._settle("")

    def _refuse(self, status: int, reason: str) -> None:
        """Answer a request with an HTTP error."""
        headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"connection", b"close")]
        self._send(RejectConnection(status_code=status, headers=headers, has_body=True))
        self._send(RejectData(data=f"{reason}\n".encode(), body_finished=True))
        self._end(reason)

    def _reject(self, error: Exception) -> None:
        """End the connection for a violation of HTTP or WebSocket."""
        if not self._is_open and not self._outer.is_closing():
            text = b"This listener speaks AMQP 1.0 over WebSocket, with the subprotocol amqp.\n"
            head = f"HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: {len(text)}\r\n\r\n"
            self._outer.write(head.encode() + text)
            self._end(f"no upgrade to WebSocket: {error}"[:200])
            return
        self._fail(f"WebSocket: {error}"[:200], CloseReason.PROTOCOL_ERROR)

    def _fail(self, reason: str, code: CloseReason = CloseReason.PROTOCOL_ERROR) -> None:
        """End the connection for a fault of the peer."""
        self._send_close(code, reason)
        self._end(reason)

    def _end(self, reason: str) -> None:
        self._is_closing = True
        self._settle(reason)
        self._outer.close()

    def _settle(self, reason: str) -> None:
        if not self.opened.done():
            self.opened.set_result(reason)

    def _send(self, event: Event) -> None:
        if not self._outer.is_closing():
            self._outer.write(self._websocket.send(event))

    def _send_close(self, code: int, reason: str) -> None:
        if self._is_open and self._websocket.state is ConnectionState.OPEN:
            self._send(CloseConnection(code=code, reason=reason[:100]))

    # The transport of the connection inside.

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """See BaseTransport."""
        return self._outer.get_extra_info(name, default)

    def is_closing(self) -> bool:
        """See BaseTransport."""
        return self._is_closing or self._outer.is_closing()

    def close(self) -> None:
        """Send what waits and a close frame, then close the stream."""
        if not self.is_closing():
            self._send_close(CloseReason.NORMAL_CLOSURE, "")
            self._is_closing = True
            self._outer.close()

    def abort(self) -> None:
        """See WriteTransport."""
        self._is_closing = True
        self._outer.abort()

    def writelines(self, list_of_data: "Iterable[bytes | bytearray | memoryview[Any]]") -> None:
        """Send buffers as one binary message."""
        self.write(b"".join(list_of_data))

    def write(self, data: "bytes | bytearray | memoryview[Any]") -> None:
        """Send bytes as one binary message."""
        if self.is_closing() or not len(data):
            return
        try:
            self._send(BytesMessage(data=bytes(data)))
        except LocalProtocolError:
            # The peer has sent its close: it reads nothing more.
            self._outer.close()

    def can_write_eof(self) -> bool:
        """Return False: WebSocket has no half of a connection."""
        return False

    def get_write_buffer_size(self) -> int:
        """See WriteTransport."""
        return self._outer.get_write_buffer_size()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """See WriteTransport."""
        self._outer.set_write_buffer_limits(high, low)

    def is_reading(self) -> bool:
        """See ReadTransport."""
        return not self._is_paused

    def pause_reading(self) -> None:
        """Hold what has arrived, and read no more."""
        if not self._is_paused and not self._outer.is_closing():
            self._is_paused = True
            self._outer.pause_reading()

    def resume_reading(self) -> None:
        """Pass on what was held, then read again."""
        if self._is_paused:
            self._is_paused = False
            # In a turn of its own: the caller may be in the middle of a read.
            asyncio.get_running_loop().call_soon(self._resume)

    def _resume(self) -> None:
        self._is_resting = False
        if self._is_paused or self._outer.is_closing():
            return
        self._take_events()
        if not self._is_paused and not self._is_resting and not self._outer.is_closing():
            self._outer.resume_reading()
