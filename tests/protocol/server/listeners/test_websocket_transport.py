"""The layer of WebSocket: the work of a turn is bounded, and no request of a stranger is a mistake of ours."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from wsproto import ConnectionType, WSConnection
from wsproto.events import BytesMessage, CloseConnection, Ping, Request

from ambermq.protocol.server.listeners.websocket_transport import _TURN_EVENTS_MAX, WebSocketTransport


class _Outer(asyncio.Transport):
    """The transport of the stream."""

    def __init__(self) -> None:
        super().__init__()
        self.sent = bytearray()
        self.is_ended = self.is_reading_paused = False

    def write(self, data: Any) -> None:
        self.sent += data

    def get_write_buffer_size(self) -> int:
        return 0

    def close(self) -> None:
        self.is_ended = True

    def is_closing(self) -> bool:
        return self.is_ended

    def pause_reading(self) -> None:
        self.is_reading_paused = True

    def resume_reading(self) -> None:
        self.is_reading_paused = False


class _Inner(asyncio.BufferedProtocol):
    """The connection inside; it counts its reads."""

    def __init__(self) -> None:
        self.buffer = bytearray(1 << 16)
        self.received = bytearray()
        self.reads = 0
        self.transport: Any = None
        self.after_read: Callable[[], None] = lambda: None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def get_buffer(self, sizehint: int) -> bytearray:
        return self.buffer

    def buffer_updated(self, nbytes: int) -> None:
        self.reads += 1
        self.received += self.buffer[:nbytes]
        self.after_read()


class _Link:
    """A client and the layer, open."""

    def __init__(self) -> None:
        self.inner, self.outer = _Inner(), _Outer()
        self.layer = WebSocketTransport(self.inner, origins=(), message_bytes_max=1 << 20)
        self.layer.connection_made(self.outer)
        self.client = WSConnection(ConnectionType.CLIENT)
        self.layer.data_received(self.client.send(Request(host="h", target="/", subprotocols=["amqp"])))
        self.client.receive_data(bytes(self.outer.sent))
        list(self.client.events())
        self.outer.sent.clear()


def test_a_flood_of_small_frames_is_processed_in_turns() -> None:
    """One read with thousands of frames: each turn takes a part, the stream rests, nothing is lost or reordered."""

    async def run() -> None:
        link = _Link()
        count = 10 * _TURN_EVENTS_MAX
        frames = b"".join(link.client.send(BytesMessage(data=bytes((number & 0xFF,)))) for number in range(count))
        link.layer.data_received(frames)
        assert link.inner.reads <= _TURN_EVENTS_MAX
        assert link.outer.is_reading_paused
        for _ in range(30):
            before = link.inner.reads
            await asyncio.sleep(0)
            assert link.inner.reads - before <= _TURN_EVENTS_MAX
        assert bytes(link.inner.received) == bytes(number & 0xFF for number in range(count))
        assert not link.outer.is_reading_paused

    asyncio.run(run())


def test_pings_count_as_frames_of_a_turn() -> None:
    async def run() -> None:
        link = _Link()
        link.layer.data_received(link.client.send(Ping()) * (3 * _TURN_EVENTS_MAX))
        assert link.outer.is_reading_paused
        assert len(link.outer.sent) == 2 * _TURN_EVENTS_MAX
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert len(link.outer.sent) == 6 * _TURN_EVENTS_MAX

    asyncio.run(run())


def test_a_connection_that_pauses_in_the_middle_gets_the_rest_later() -> None:
    """Its pause holds the input as bytes, also through a turn that is over meanwhile."""

    async def run() -> None:
        link = _Link()

        def pause() -> None:
            if link.inner.reads == 3:
                link.layer.pause_reading()

        link.inner.after_read = pause
        link.layer.data_received(b"".join(link.client.send(BytesMessage(data=b"x")) for _ in range(600)))
        await asyncio.sleep(0)
        assert link.inner.reads == 3
        link.layer.resume_reading()
        for _ in range(5):
            await asyncio.sleep(0)
        assert link.inner.reads == 600
        assert not link.outer.is_reading_paused

    asyncio.run(run())


def test_a_close_behind_a_flood_ends_the_stream() -> None:
    async def run() -> None:
        link = _Link()
        frames = link.client.send(Ping()) * (2 * _TURN_EVENTS_MAX)
        link.layer.data_received(frames + link.client.send(CloseConnection(code=1000)))
        assert not link.outer.is_ended
        for _ in range(4):
            await asyncio.sleep(0)
        assert link.outer.is_ended

    asyncio.run(run())


@pytest.mark.parametrize(
    "header", [b"Host: \xff\xfe", b"Host: a\r\nSec-WebSocket-Protocol: \xff", b"Host: a\r\nConnection: \xe9, Upgrade"]
)
def test_a_request_that_is_not_ascii_is_refused(header: bytes) -> None:
    """The library cannot decode it: the peer gets an answer, and the log one line without a traceback."""

    async def run() -> None:
        outer = _Outer()
        layer = WebSocketTransport(_Inner(), origins=(), message_bytes_max=1 << 20)
        layer.connection_made(outer)
        rest = b"Upgrade: websocket\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n"
        layer.data_received(b"GET / HTTP/1.1\r\n" + header + b"\r\nConnection: Upgrade\r\n" + rest + b"\r\n")
        assert outer.sent.startswith(b"HTTP/1.1 400")
        assert outer.is_ended
        assert "no upgrade" in await layer.opened

    asyncio.run(run())
