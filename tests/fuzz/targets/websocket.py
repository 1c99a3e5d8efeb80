"""AMQP inside of WebSocket, at the server's end.

    byte 0   the size of the pieces in which the input arrives, 0: all at once; the highest bit: behind an upgrade
    byte 1-  what a client sends

Rule: each fault of the peer closes the transport. The connection inside gets the bytes of binary messages alone.
"""

import asyncio
from functools import cache
from typing import Any, Final

from ambermq.protocol.server.listeners.websocket_transport import WebSocketTransport
from tests.fuzz.target import Target

_UPGRADED: Final = 0x80
_MESSAGE_BYTES_MAX: Final = 4096
_KEY: Final = b"dGhlIHNhbXBsZSBub25jZQ=="
_REQUEST: Final = (
    b"GET / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
    b"Sec-WebSocket-Protocol: amqp\r\nSec-WebSocket-Key: " + _KEY + b"\r\n\r\n"
)


class _Outer(asyncio.Transport):
    """The transport of the byte stream."""

    def __init__(self) -> None:
        super().__init__()
        self.written = bytearray()
        self.is_closed = False

    def write(self, data: Any) -> None:
        assert not self.is_closed
        self.written += data

    def close(self) -> None:
        self.is_closed = True

    def abort(self) -> None:
        self.is_closed = True

    def is_closing(self) -> bool:
        return self.is_closed

    def get_write_buffer_size(self) -> int:
        return len(self.written)

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return default


class _Inner(asyncio.BufferedProtocol):
    """The connection inside: it pauses and resumes at each read, and echoes."""

    def __init__(self) -> None:
        self.received = bytearray()
        self._buffer = bytearray(64)
        self._transport: Any = None

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def get_buffer(self, sizehint: int) -> bytearray:
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        self.received += self._buffer[:nbytes]
        self._transport.write(b"echo")
        self._transport.pause_reading()
        self._transport.resume_reading()


def run(data: bytes) -> None:
    """Feed the bytes to the layer."""
    _loop().run_until_complete(_feed(data))


@cache
def _loop() -> asyncio.AbstractEventLoop:
    return asyncio.new_event_loop()


async def _feed(data: bytes) -> None:
    how, sent = data[0] if data else 0, data[1:]
    size = how & ~_UPGRADED or max(len(sent), 1)
    outer, inner = _Outer(), _Inner()
    layer = WebSocketTransport(inner, origins=("https://console",), message_bytes_max=_MESSAGE_BYTES_MAX)
    layer.connection_made(outer)
    if how & _UPGRADED:
        layer.data_received(_REQUEST)
        assert layer.opened.result() == ""
    for start in range(0, len(sent), size):
        if outer.is_closed:
            break
        layer.data_received(sent[start : start + size])
        await asyncio.sleep(0)
    assert len(inner.received) <= len(sent)
    if not outer.is_closed:
        layer.close()
    layer.connection_lost(None)
    assert layer.opened.done()


def seeds() -> list[bytes]:
    """Return upgrade requests, and frames behind one."""
    frames = _frames()
    return [
        b"\0" + _REQUEST,
        b"\7" + _REQUEST + b"".join(frames),
        b"\0" + _REQUEST.replace(b"Host: a", b"Host: a\r\nOrigin: https://console"),
        b"\0" + _REQUEST.replace(b"Host: a", b"Host: a\r\nOrigin: http://evil"),
        b"\0" + _REQUEST.replace(b": amqp", b": AMQPWSB10, x"),
        b"\0" + _REQUEST.replace(b": amqp", b": mqtt"),
        b"\0" + _REQUEST.replace(b"Host: a", b"Host: a\r\nSec-WebSocket-Extensions: permessage-deflate; x=1"),
        *(
            b"\0" + _REQUEST.replace(old, old + b"\xff")
            for old in (b"Host: ", b"Connection: ", b"Protocol: ", b"Key: ")
        ),
        b"\0GET / HTTP/1.1\r\nHost: a\r\n\r\n",
        b"\0AMQP\0\1\0\0",
        *(b"\x80" + frame for frame in frames),
        b"\x83" + b"".join(frames),
    ]


def _frames() -> list[bytes]:
    """Return the frames of a client, with a mask of zeros."""
    return [_masked(head, content) for head, content in _FRAMES]


def _masked(head: int, content: bytes) -> bytes:
    size = bytes([0x80 | len(content)]) if len(content) < 126 else b"\xfe" + len(content).to_bytes(2, "big")
    return bytes([head]) + size + bytes(4) + content


_FRAMES: Final = (
    (0x82, b"AMQP\0\1\0\0"),
    (0x02, b"begin"),
    (0x80, b"end"),
    (0x89, b"ping"),
    (0x8A, b"pong"),
    (0x82, b"x" * 5000),
    (0x88, b"\x03\xe8bye"),
    (0x88, b""),
    (0x81, "ä".encode()),
    (0xC2, b"compressed"),
)

TARGET: Final = Target(
    run,
    seeds,
    words=(
        *(b"GET / HTTP/1.1\r\n", b"\r\n", b"\r\n\r\n", b"Upgrade: websocket", b"Connection: Upgrade", b"Host: "),
        *(b"Sec-WebSocket-Protocol: ", b"Sec-WebSocket-Key: ", b"Sec-WebSocket-Version: 13", b"Origin: ", b"\xff"),
        *(b"Sec-WebSocket-Extensions: ", b"Content-Length: 5", b"Transfer-Encoding: chunked", b"Expect: 100-continue"),
        *(bytes([head, 0x80]) + bytes(4) for head in (0x00, 0x01, 0x02, 0x80, 0x81, 0x82, 0x88, 0x89, 0x8A)),
        b"\x82\xff\x7f\xff\xff\xff\xff\xff\xff\xff",
    ),
)
