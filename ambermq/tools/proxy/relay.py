"""The relay: a listener, and for each client a connection to the broker, with every byte recorded on its way.

Rule 1. A peer that does not read stops the reads of the other one: buffers hold at most some reads of READ_BYTES.
Rule 2. Bytes are recorded when they are read, and forwarded after that. So an answer never precedes its question.
Rule 3. The end of one direction is forwarded alone, as TCP has it. A reset is forwarded as a reset. TLS has no end of
        one direction: there it ends the connection.
Rule 4. With TLS the recording has the bytes of AMQP, as they are between the two TLS connections.
"""

import asyncio
import socket
import ssl
import struct
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from ambermq.tools.client.broker_url import BrokerUrl
from ambermq.tools.proxy.recording import Kind, Record

__all__ = ["READ_BYTES", "Relay"]

READ_BYTES: Final = 64 * 1024
_CONNECT_SECONDS: Final = 10.0
_RESET: Final = struct.pack("ii", 1, 0)
"""The socket option SO_LINGER that makes a close a reset."""

Note = Callable[[Record], None]


class Relay:
    """A listener and its connections; `note` receives every record, in order."""

    def __init__(
        self,
        target: BrokerUrl,
        note: Note,
        *,
        connections_max: int,
        listener_tls: ssl.SSLContext | None = None,
        target_tls: ssl.SSLContext | None = None,
    ) -> None:
        """`listener_tls` is the TLS of the clients, `target_tls` that of the broker; None is none."""
        self._listener_tls = listener_tls
        self._target = target
        self._target_tls = target_tls
        self._note = note
        self._connections_max = connections_max
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self.connection_count = 0
        """The connections since the start."""

    async def listen(self, host: str, port: int) -> str:
        """Start to listen; return the address as HOST:PORT. Raises OSError if that fails."""
        self._server = await asyncio.start_server(self._accept, host, port, limit=READ_BYTES, ssl=self._listener_tls)
        address = self._server.sockets[0].getsockname()
        return _address_text(address)

    async def close(self) -> None:
        """Stop to listen, and end all connections."""
        if self._server is not None:
            self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._tasks) >= self._connections_max:
            _reset(writer)
            return
        self.connection_count += 1
        connection = _RelayedConnection(self.connection_count, self._note)
        task = asyncio.get_running_loop().create_task(connection.run(reader, writer, self._target, self._target_tls))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


class _RelayedConnection:
    """One client and its connection to the broker."""

    def __init__(self, number: int, note: Note) -> None:
        self._number = number
        self._note = note

    async def run(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        target: BrokerUrl,
        target_tls: ssl.SSLContext | None,
    ) -> None:
        """Relay until both directions have ended."""
        self._append(Kind.OPENED, _address_text(writer.get_extra_info("peername")).encode())
        try:
            opening = asyncio.open_connection(target.host, target.port, limit=READ_BYTES, ssl=target_tls)
            broker_reader, broker_writer = await asyncio.wait_for(opening, _CONNECT_SECONDS)
        except (OSError, TimeoutError) as error:
            found = getattr(error, "strerror", None) or str(error) or "no answer"
            self._append(Kind.BROKER_END, f"cannot connect to {target}: {found}".encode())
            _reset(writer)
            return
        except asyncio.CancelledError:
            _reset(writer)
            raise
        try:
            await asyncio.gather(
                self._pump(reader, broker_writer, writer, Kind.CLIENT, Kind.CLIENT_END),
                self._pump(broker_reader, writer, broker_writer, Kind.BROKER, Kind.BROKER_END),
            )
        finally:
            for each in (writer, broker_writer):
                each.close()

    async def _pump(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        own: asyncio.StreamWriter,
        kind: Kind,
        end: Kind,
    ) -> None:
        """Forward one direction until its end; `own` writes to the peer that `reader` reads from."""
        _limit_buffers(writer)
        try:
            while data := await reader.read(READ_BYTES):
                self._append(kind, data)
                writer.write(data)
                # A failed write is the fault of the other peer, whose own direction reports it.
                with suppress(ConnectionError):
                    await writer.drain()
        except OSError as error:
            self._append(end, (error.strerror or str(error)).encode())
            _reset(writer)
            _reset(own)
            return
        self._append(end, b"")
        with suppress(OSError):
            if writer.can_write_eof():
                writer.write_eof()
            else:
                writer.close()

    def _append(self, kind: Kind, content: bytes) -> None:
        self._note(Record(time.time_ns() // 1_000, self._number, kind, content))


def _limit_buffers(writer: asyncio.StreamWriter) -> None:
    writer.transport.set_write_buffer_limits(READ_BYTES)
    stream = writer.get_extra_info("socket")
    if stream is not None:
        with suppress(OSError):
            stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def _reset(writer: asyncio.StreamWriter) -> None:
    stream = writer.get_extra_info("socket")
    if stream is not None:
        with suppress(OSError):
            stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    writer.transport.abort()


def _address_text(address: tuple[object, ...] | None) -> str:
    if not address:
        return "-"
    host = str(address[0])
    return f"[{host}]:{address[1]}" if ":" in host else f"{host}:{address[1]}"
