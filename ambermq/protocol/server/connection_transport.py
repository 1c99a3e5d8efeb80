"""One accepted connection: bytes between its transport and its Connection.

Rule 1. What is read is translated at once and only gathered; the tick that follows decides it.
Rule 2. A peer that does not read gets no deliveries; one that goes on asking for answers is not read either. Once it is
        closed it has close_ms for each bit of what is left.
Rule 3. Connections within the machine are not paced.
"""

import asyncio
import socket
import time
from contextlib import suppress
from typing import Final, cast, final

from ambermq.engine.loop.schedule import LATER, NOW
from ambermq.protocol.amqp10.connection.connection import Connection, ConnectionRole
from ambermq.protocol.amqp10.performatives.classes import Error
from ambermq.protocol.gateway.connection_gateway import ConnectionGateway
from ambermq.protocol.server.transport_server import TransportServer
from ambermq.protocol.server.vhost_runner import VhostRunner

__all__ = ["SWEEP_MS", "ConnectionTransport"]

SWEEP_MS: Final = 1000
"""How often every connection's clock is looked at; one that is due sooner has a timer."""


@final
class ConnectionTransport(asyncio.BufferedProtocol):
    """One accepted connection: bytes between its transport and its Connection."""

    __slots__ = (
        *("_gone_by_ms", "_is_draining", "_is_timed", "_opened_by_ms", "_server", "_unsent_bytes"),
        *("host", "peer", "transport"),
    )

    transport: asyncio.Transport
    host: VhostRunner
    """The virtual host that it belongs to: the default one until its open has come."""

    def __init__(self, server: TransportServer["ConnectionTransport"]) -> None:
        self._server = server
        self._opened_by_ms = self._gone_by_ms = 0
        self._unsent_bytes = -1
        self._is_draining = False
        self._is_timed = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin a connection, unless there are too many or the server stops."""
        server = self._server
        self.transport = cast(asyncio.Transport, transport)
        now_ms = int(time.monotonic() * 1000)
        connection = Connection(
            ConnectionRole.SERVER,
            server.limits,
            now_ms=now_ms,
            container_id=server.container_id,
            sasl=server.sasl,
            allow_bare=server.allow_bare,
        )
        self.host = server.default
        self.peer = ConnectionGateway(self.host.gateway, connection, server.authenticate)
        if server.is_crowded:
            self.peer.lost()
            self.transport.abort()
            return
        limits = server.server_limits
        server.sockets[self.peer] = self
        self._opened_by_ms = now_ms + limits.handshake_ms
        _spare_pacing(self.transport)
        self.transport.set_write_buffer_limits(high=limits.output_high_bytes, low=limits.output_high_bytes // 4)

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell the engine that the peer is gone."""
        del exc
        server = self._server
        if server.sockets.pop(self.peer, None) is not None:
            self.peer.lost()
            self.host.tick_soon()

    def get_buffer(self, sizehint: int) -> memoryview:
        """Lend the shared read buffer."""
        del sizehint
        buffer = self._server.read_buffer
        return buffer.free or buffer.get_buffer()

    def buffer_updated(self, nbytes: int) -> None:
        """Take what was read."""
        server = self._server
        buffer = server.read_buffer
        peer = self.peer
        connection = peer.connection
        # One look at the clock serves the connection and the tick.
        clock_us = time.monotonic_ns() // 1000
        if connection.receive(buffer.free[:nbytes], clock_us // 1000):
            buffer.keep(nbytes)
        try:
            peer.handle_events()
        except Exception as mistake:  # noqa: BLE001 - ours, and it costs this connection alone
            peer.gateway.blame(peer, mistake)
        if self._opened_by_ms and connection.remote_open is not None:
            self.host = server.hosts[peer.gateway.vhost]
            # A peer with a short idle timeout needs its first heartbeat before the next sweep.
            self.look_at_clock(clock_us // 1000)
        host = self.host
        if connection.output.size or connection.dirty or connection.is_ended:
            self._has_output(host)
        if host.gateway.sources.ready:
            host.turn_soon()
        now_us = clock_us + server.epoch_us
        due = host.schedule.due(now_us)
        # The cases of a message alone come first, without a call between.
        if due == NOW:
            host.run(host.step, now_us)
        elif due == LATER:
            host.arm(now_us)
        elif due:
            host.after_read(due, now_us)
        if host.engine.log.is_congested:
            host.pause_reading(self)

    def _has_output(self, host: VhostRunner) -> None:
        """Let the answers to what was read leave with the tick that follows."""
        if self.peer.connection.output_bytes > self._server.server_limits.output_high_bytes:
            # One iteration of the loop may read 32 buffers: a peer that asks for answers and takes none stops here.
            self.flush()
        else:
            host.gateway.touched[self.peer] = None
            host.tick_soon()

    def eof_received(self) -> bool:
        """Let the transport close: the peer sends no more."""
        return False

    def pause_writing(self) -> None:
        """Hand the peer nothing more: it does not read what it got."""
        self.peer.pause()

    def resume_writing(self) -> None:
        """Go on: the peer has read."""
        self.peer.resume()
        if self._is_draining:
            self._is_draining = False
            self.resume_reading()
        self.host.gateway.touched[self.peer] = None
        self.host.tick_soon()

    def resume_reading(self) -> None:
        """Read again, unless so much is unsent that the peer must read first."""
        if not self._is_draining and not self.transport.is_closing():
            self.transport.resume_reading()

    def flush(self) -> None:
        """Write what the connection has for its peer."""
        connection = self.peer.connection
        output = connection.take_output()
        transport = self.transport
        if output and not transport.is_closing():
            transport.writelines(output)
            if (
                self.peer.is_paused
                and not self._is_draining
                and transport.get_write_buffer_size() > self._server.server_limits.output_max_bytes
            ):
                self._is_draining = True
                transport.pause_reading()
        if connection.is_ended:
            self.close_when_sent()

    def close(self, error: Error) -> None:
        """Close the connection from our side, with the next tick."""
        self.peer.lost()
        self.peer.connection.close(error)
        self.host.gateway.touched[self.peer] = None
        self.host.tick_soon()

    def leave(self, host: VhostRunner, error: Error) -> None:
        """Close the connection as its virtual host goes; another one, of which it never sees more, sends the close."""
        self.peer.lost()
        self.host, self.peer.gateway = host, host.gateway
        self.close(error)
        self.resume_reading()

    def close_when_sent(self) -> None:
        """Close the transport; what is buffered is still sent."""
        if not self.transport.is_closing():
            self.transport.close()

    def excuse(self, lost_ms: int, now_ms: int) -> None:
        """Move the peer's deadlines by the time in which we stood still: it is not late for what we have not read."""
        if self._opened_by_ms:
            self._opened_by_ms += lost_ms
        self._gone_by_ms += lost_ms
        self.peer.connection.excuse(lost_ms, now_ms)

    def look_at_clock(self, now_ms: int) -> None:
        """Send a heartbeat where one is due; drop a peer that is silent or never opened."""
        connection = self.peer.connection
        if self.transport.is_closing():
            self._see_it_go(now_ms)
            return
        if self._opened_by_ms and connection.remote_open is not None:
            self._opened_by_ms = 0
        if self._opened_by_ms and now_ms > self._opened_by_ms:
            self.transport.abort()
            return
        due_ms = connection.poll(now_ms)
        if connection.output.size or connection.events:
            self.peer.handle_events()
            self.flush()
        if due_ms is not None and due_ms < now_ms + SWEEP_MS and not self._is_timed:
            self._is_timed = True
            self._server.call_later(due_ms - now_ms, self._timer_fired)

    def _see_it_go(self, now_ms: int) -> None:
        """Drop a peer that is closed and takes no more of what it is still sent."""
        unsent_bytes = self.transport.get_write_buffer_size()
        if unsent_bytes != self._unsent_bytes:
            self._unsent_bytes, self._gone_by_ms = unsent_bytes, now_ms + self._server.limits.close_ms
        elif now_ms > self._gone_by_ms:
            self.transport.abort()

    def _timer_fired(self) -> None:
        self._is_timed = False
        now_ms = time.monotonic_ns() // 1_000_000
        # A sweep that is late comes next, and excuses before it looks.
        if not self.transport.is_closing() and not self._server.lost_ms(now_ms):
            self.look_at_clock(now_ms)


def _spare_pacing(transport: asyncio.Transport) -> None:
    """Let a connection within the machine go unpaced, whatever congestion control is the system's choice for networks.

    Measured at 64 KiB a message: bbr paces with a timer for every few segments, 70 us of CPU a message against 64.
    """
    peer, stream = transport.get_extra_info("peername"), transport.get_extra_info("socket")
    if peer and stream is not None and str(peer[0]) in ("127.0.0.1", "::1"):
        with suppress(OSError, AttributeError):
            stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"reno")
