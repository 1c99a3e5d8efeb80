"""One accepted connection: bytes between its transport and its Connection.

Rule 1. A read is translated into commands at once; the next tick decides them.
Rule 2. A peer that does not read gets no deliveries. If its answers pile up, too, it is not read either. After the
        close it has close_ms for each further part of the output.
Rule 3. A peer that misses one of its deadlines (peer_deadlines.py) is dropped: what it acquired goes back.
Rule 4. The admission counts a connection before it has a transport, and until the transport ends or it is dropped.
Rule 5. After a fault of the peer the socket is shut down first. A socket that is closed with unread input resets the
        connection, and the peer would lose our close.
Rule 6. The frames of one read that are no transfers have a limit of work in each iteration of the event loop. While
        the rest waits for its next turn, the peer is not read. So the work of connections alternates.
"""

import asyncio
import time
from contextlib import suppress
from typing import Final, cast, final

from ambermq.engine.loop.schedule import LATER, NOW
from ambermq.protocol.amqp10.connection.connection import Connection
from ambermq.protocol.amqp10.connection.connection_role import ConnectionRole
from ambermq.protocol.amqp10.connection.sasl import SaslServer
from ambermq.protocol.amqp10.memory_budget import MemoryAccount
from ambermq.protocol.amqp10.performatives.classes import Error
from ambermq.protocol.auth.peer import LOCAL_PEER, Peer
from ambermq.protocol.gateway.connection_gateway import ConnectionGateway
from ambermq.protocol.server.connections.connection_log import (
    log_closed,
    log_dropped,
    log_fault,
    log_opened,
    log_refusal,
)
from ambermq.protocol.server.connections.peer_deadlines import PeerDeadlines
from ambermq.protocol.server.connections.transport_server import TransportServer
from ambermq.protocol.server.listeners.socket_options import configure_socket
from ambermq.protocol.server.vhosts.runner import VhostRunner

__all__ = ["SWEEP_MS", "ConnectionTransport"]

SWEEP_MS: Final = 1000
"""The interval at which the deadlines of all connections are checked. A deadline in the next two has a timer."""
_UPLOAD_READ_BYTES: Final = 64 * 1024
"""A read of this size ends the turn of a connection of which pieces of large messages wait for the disk."""
_TURN_COST_MAX: Final = 256
"""The work of a turn: 28 attaches, or 256 flows."""


@final
class ConnectionTransport(asyncio.BufferedProtocol):
    """One accepted connection: bytes between its transport and its Connection."""

    __slots__ = (
        *("_deadlines", "_end_reason", "_is_ahead", "_is_counted", "_is_draining", "_is_logged", "_is_opening"),
        *("_is_shut", "_is_timed", "_server", "address", "bytes_in", "handshake", "host", "id", "peer", "peer_info"),
        *("since_us", "transport"),
    )

    transport: asyncio.Transport
    host: VhostRunner
    """The virtual host of the connection: the default one until its open arrives."""

    def __init__(self, server: TransportServer["ConnectionTransport"], peer_info: Peer = LOCAL_PEER) -> None:
        self._server = server
        self.peer_info = peer_info
        """The other end, as its listener and its transport know it."""
        self.address = peer_info.address
        """The address of the peer, as limits count it."""
        self.handshake: asyncio.Task[None] | None = None
        """The task of the layers below AMQP, while it runs; a dropped connection cancels it."""
        self._deadlines = PeerDeadlines(time.monotonic_ns() // 1_000_000 + server.server_limits.handshake_ms)
        self._is_opening = False
        """Whether the peer has not opened, or is to send a token: each of its reads is looked at for that."""
        self._is_logged = False
        """Whether the log has a line for the open of the connection, so that it gets one for its end."""
        self._end_reason = ""
        """Why this end has closed the connection; empty while it has not."""
        self.id = 0
        """The number of the connection; 0 before it is made."""
        self.since_us = 0
        """When it was made."""
        self.bytes_in = 0
        """The bytes that the peer has sent."""
        self._is_counted = True
        """Whether the admission counts the connection."""
        self._is_draining = False
        self._is_ahead = False
        """Whether pieces of its large messages wait for the disk, so that it is not read from."""
        self._is_timed = False
        self._is_shut = False
        """Whether this end sends no more; the input is dropped until the peer closes its end."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin a connection, unless it was dropped already or the server stops."""
        server = self._server
        self.transport = cast(asyncio.Transport, transport)
        now_ms = int(time.monotonic() * 1000)
        self.peer_info = server.layers.proved(self.peer_info, self.transport)
        connection = Connection(
            ConnectionRole.SERVER,
            server.limits,
            now_ms=now_ms,
            container_id=server.container_id,
            sasl=SaslServer(server.authenticator.mechanisms(self.peer_info)),
            allow_bare=server.authenticator.bare(self.peer_info) is not None,
            budget=server.memory.budget,
        )
        connection.turn_cost_max = _TURN_COST_MAX
        self.host = server.default
        self.id, self.since_us = server.next_id(), server.now_us()
        self.peer = ConnectionGateway(
            self.host.gateway, connection, server.authenticator, self.peer_info, self._login_answered
        )
        self.peer.transport = self
        if server.is_ending or not self._is_counted:
            self.peer.lost()
            self.transport.abort()
            return
        limits = server.server_limits
        server.sockets[self.peer] = self
        self._is_opening = True
        configure_socket(self.transport, write_timeout_ms=limits.write_timeout_ms)
        self.transport.set_write_buffer_limits(high=limits.output_high_bytes, low=limits.output_high_bytes // 4)

    def connection_lost(self, exc: Exception | None) -> None:
        """Detach the links of the lost peer from the engine, and free what the broker held for it."""
        self._log_end(str(exc) if exc else "")
        self._leave()
        self.peer.release()

    def drop(self, reason: str) -> None:
        """End the connection at once: the server has no room for it."""
        self._server.peer_log.warning("connection dropped", self.address, reason=reason)
        self._end_reason = reason
        self._leave()
        if hasattr(self, "transport"):
            self.transport.abort()
        elif self.handshake is not None:
            self.handshake.cancel()

    def never_connected(self) -> None:
        """Count the connection out: it got no transport."""
        self._leave()

    def identify(self, peer_info: Peer) -> None:
        """Set the client behind a proxy; the admission counts it next, and the connection was counted out."""
        self.peer_info = peer_info
        self.address = peer_info.address
        self._is_counted = True

    def refused(self) -> None:
        """Note that the admission does not count the connection."""
        self._is_counted = False

    @property
    def peer_name(self) -> str:
        """The address and port of the peer, or its socket."""
        return self.peer_info.name

    @property
    def bytes_out(self) -> int:
        """The bytes that the peer was sent."""
        return self.peer.connection.output.taken_bytes

    @property
    def idle_us(self) -> int:
        """The time since the peer's last bytes."""
        return max(0, time.monotonic_ns() // 1000 - self.peer.connection.received_ms * 1000)

    def _leave(self) -> None:
        if self._is_counted:
            self._is_counted = False
            self._server.admission.left(self)
        if hasattr(self, "peer") and self._server.sockets.pop(self.peer, None) is not None:
            self.peer.lost()
            self.host.tick_soon()

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return the shared read buffer."""
        del sizehint
        buffer = self._server.read_buffer
        return buffer.free or buffer.get_buffer()

    def buffer_updated(self, nbytes: int) -> None:
        """Process the bytes of a read."""
        server = self._server
        buffer = server.read_buffer
        peer = self.peer
        connection = peer.connection
        # The clock is read once for the connection and the tick.
        clock_us = time.monotonic_ns() // 1000
        self.bytes_in += nbytes
        try:
            if connection.receive(buffer.free[:nbytes], clock_us // 1000):
                buffer.keep(nbytes)
            peer.handle_events()
        except MemoryError:
            self._end_exhausted()
            return
        except Exception as mistake:  # noqa: BLE001 - a bug, which ends only this connection
            peer.gateway.blame(peer, mistake)
        if self._is_opening:
            self._check_open(clock_us // 1000)
        budget = server.memory.budget
        if budget.held_bytes >= budget.high_bytes:
            server.memory.check()
        host = self.host
        if connection.output.size or connection.dirty or connection.is_ended:
            self._has_output(host)
        if host.gateway.sources.ready:
            host.serve_sources_soon()
        now_us = clock_us + server.epoch_us
        due = host.schedule.due(now_us)
        # A message alone has one of the first two cases, without a further call.
        if due == NOW:
            host.run(host.step, now_us)
        elif due == LATER:
            host.arm(now_us)
        elif due:
            host.after_read(due, now_us)
        if connection.is_resting:
            self._rest()
        if peer.uploads.windows.size:
            self._rest_upload(nbytes)
        if host.engine.log.is_congested:
            host.pause_reading(self)

    def _check_open(self, now_ms: int) -> None:
        """Count and log a connection that has opened."""
        peer, connection, server = self.peer, self.peer.connection, self._server
        if connection.remote_open is None:
            return
        self.host = server.hosts[peer.gateway.vhost]
        if self._is_counted and not connection.is_ended and not peer.identity.awaits_token:
            server.admission.authenticated(self)
            self._is_logged = self._is_logged or log_opened(server.peer_log, self)
        self._is_opening = peer.identity.awaits_token
        # A peer with a short idle timeout needs its first heartbeat before the next sweep.
        self.check_deadlines(now_ms)

    def _login_answered(self) -> None:
        """Process the input that was held until SASL has answered; an empty read does it."""
        if not self.transport.is_closing() and self.peer in self._server.sockets:
            self.buffer_updated(0)

    def _log_end(self, reason: str) -> None:
        if self._is_logged:
            self._is_logged = False
            error = self.peer.end_error
            described = "" if error is None else str(error.description or error.condition)
            why = self._end_reason or described or reason or "closed by the peer"
            log_closed(self._server.peer_log, self, why, self._server.now_us())

    def _rest(self) -> None:
        """Stop reading until the held input has had its next turn."""
        self.transport.pause_reading()
        self._server.call_soon(self._take_turn)

    def _rest_upload(self, size: int) -> None:
        """Stop reading a peer of which pieces wait for the disk: until fewer wait, or until others had their turn."""
        if self.peer.uploads.windows.size > self._server.server_limits.upload_waiting_bytes:
            self._is_ahead = True
            self.transport.pause_reading()
        elif size >= _UPLOAD_READ_BYTES:
            # An iteration of the loop would read 32 buffers of it.
            self.transport.pause_reading()
            self._server.call_soon(self._read_on)

    def _read_on(self) -> None:
        """Read the next bytes of a large message; a server that stops reads no more."""
        if self._server.is_ending:
            return
        if self.host.engine.log.is_congested:
            self.host.pause_reading(self)
        else:
            self.resume_reading()

    def _take_turn(self) -> None:
        """Process the next part of the held input; an empty read does it."""
        if self.transport.is_closing() or self.peer not in self._server.sockets:
            return
        self.buffer_updated(0)
        if not self.peer.connection.is_resting and not self.host.engine.log.is_congested:
            self.resume_reading()

    def _has_output(self, host: VhostRunner) -> None:
        """Schedule the flush of the answers to a read for the next tick."""
        if self._is_shut:
            return
        if self.peer.connection.output_bytes > self._server.server_limits.output_high_bytes:
            # One iteration of the loop may read 32 buffers. The flush stops a peer that only requests answers.
            self.flush()
        else:
            host.gateway.touched[self.peer] = None
            host.tick_soon()

    def eof_received(self) -> bool:
        """Return False, so that the transport closes: the peer sends no more bytes."""
        return False

    def pause_writing(self) -> None:
        """Stop deliveries, because the peer does not read them."""
        self.peer.pause()
        self.survey()

    def resume_writing(self) -> None:
        """Resume deliveries and reading, because the peer reads again."""
        self.peer.resume()
        self.survey()
        if self._is_draining:
            self._is_draining = False
            self.resume_reading()
        self.host.gateway.touched[self.peer] = None
        self.host.tick_soon()

    def resume_reading(self) -> None:
        """Resume reading, unless the peer must read its output first."""
        is_held = self._is_draining or self._is_ahead or self.peer.connection.is_resting
        if not is_held and not self.transport.is_closing():
            self.transport.resume_reading()

    def flush(self) -> None:
        """Write the output of the connection."""
        connection = self.peer.connection
        if self._is_ahead and self.peer.uploads.windows.size <= self._server.server_limits.upload_waiting_bytes:
            self._is_ahead = False
            if not self.host.engine.log.is_congested:
                self.resume_reading()
            else:
                self.host.pause_reading(self)
        output = connection.take_output()
        transport = self.transport
        if output and not transport.is_closing():
            transport.writelines(output)
            if self.peer.is_paused:
                self._check_unsent()
        if connection.is_ended:
            self.close_when_sent()

    def _check_unsent(self) -> None:
        """Count the output that the peer does not read, and stop reading a peer that only requests answers."""
        self.survey()
        transport = self.transport
        if not self._is_draining and transport.get_write_buffer_size() > self._server.server_limits.output_max_bytes:
            self._is_draining = True
            transport.pause_reading()

    @property
    def memory(self) -> MemoryAccount:
        """What the connection makes the broker hold."""
        return self.peer.connection.memory

    @property
    def is_ending(self) -> bool:
        """Whether the broker has closed the connection, or its transport is closing."""
        return self.peer.connection.is_closing or self.transport.is_closing()

    def survey(self) -> None:
        """Count what is not counted as it changes: output, unsettled deliveries, answers."""
        connection, transport = self.peer.connection, self.transport
        waiting_bytes = self.peer.surveyed_bytes() + transport.get_write_buffer_size()
        connection.memory.survey(connection.surveyed_bytes() + waiting_bytes)

    def end_overdrawn(self, error: Error) -> None:
        """Close the connection, and free what the broker holds for it; cut it if that is output, or if it is ending."""
        if self.is_ending or self.transport.get_write_buffer_size() > self.memory.held_bytes // 2:
            self._cut()
            return
        held_bytes = self.memory.held_bytes
        self.close(error)
        self.survey()
        if self.memory.held_bytes > held_bytes // 2:
            self._cut()

    def _end_exhausted(self) -> None:
        """End this connection because memory could not be allocated for it; the others go on."""
        self._cut()
        self._server.peer_log.warning(
            "connection closed", self.address, reason="no memory could be allocated for its input"
        )

    def _cut(self) -> None:
        """End the connection without its output, and free everything at once."""
        self.transport.abort()
        self.memory.close()

    def close(self, error: Error) -> None:
        """Close the connection from our end, with the next tick."""
        self._end_reason = str(error.description or error.condition)
        self.peer.lost()
        self.peer.connection.close(error)
        self.host.gateway.touched[self.peer] = None
        self.host.tick_soon()

    def close_with_vhost(self, host: VhostRunner, error: Error) -> None:
        """Close the connection of a deleted virtual host; `host`, another one, sends the close."""
        self.peer.lost()
        self.host, self.peer.gateway, self.peer.uploads.gateway = host, host.gateway, host.gateway
        self.close(error)
        self.resume_reading()

    def close_when_sent(self) -> None:
        """Close the transport after it has sent its buffer; after a fault when the peer closes, within close_ms."""
        transport = self.transport
        if transport.is_closing() or self._is_shut:
            return
        fault = self.peer.connection.fault
        if fault is None:
            transport.close()
            return
        if self.peer.login_failure is not None:
            log_refusal(self._server.peer_log, self, self.peer.login_failure)
        else:
            log_fault(self._server.peer_log, self, fault)
        if not transport.can_write_eof():
            # TLS and WebSocket have no half of a connection; they read on until the peer has closed.
            transport.close()
            return
        self._is_shut = True
        with suppress(OSError):
            transport.write_eof()
        if self._is_draining:
            self._is_draining = False
            transport.resume_reading()

    def extend_deadlines(self, stall_ms: int, now_ms: int) -> None:
        """Extend the peer's deadlines by the time in which this process stood still: its bytes may lie unread."""
        self._deadlines.extend(stall_ms)
        self.peer.connection.extend_deadlines(stall_ms, now_ms)

    def check_deadlines(self, now_ms: int) -> None:
        """Send a due heartbeat; drop a peer that is silent or sent no open in time."""
        connection, transport = self.peer.connection, self.transport
        if transport.is_closing() or self._is_shut:
            unsent_bytes, close_ms = transport.get_write_buffer_size(), self._server.limits.close_ms
            if self._deadlines.misses_close(now_ms, unsent_bytes=unsent_bytes, close_ms=close_ms):
                transport.abort()
            return
        if self._is_late(now_ms):
            return
        if self.peer.tokens is not None:
            self.peer.check_tokens()
            if self.peer in self.host.gateway.touched:
                self.host.tick_soon()
        if self.peer.uploads:
            self.peer.end_idle_uploads(now_ms, is_read=self.transport.is_reading())
            if self.peer in self.host.gateway.touched:
                self.host.tick_soon()
        due_ms = connection.poll(now_ms)
        if connection.output.size or connection.events:
            self.peer.handle_events()
            self.flush()
        if due_ms is not None and due_ms < now_ms + 2 * SWEEP_MS and not self._is_timed:
            self._is_timed = True
            self._server.call_later(due_ms - now_ms, self._timer_fired)

    def _is_late(self, now_ms: int) -> bool:
        """Drop a peer that has missed a deadline; return whether it was dropped."""
        deadlines, limits, connection = self._deadlines, self._server.server_limits, self.peer.connection
        if connection.remote_open is not None and not self.peer.identity.awaits_token:
            deadlines.opened()
        if deadlines.misses_open(now_ms):
            missing = "open" if connection.remote_open is None else "token"
            why = f"no {missing} within {limits.handshake_ms} ms (handshake_ms)"
            self._server.peer_log.warning("connection failed", self.address, reason=why)
            self.transport.abort()
            return True
        unsent_bytes = self.transport.get_write_buffer_size()
        is_read, bytes_in = self.transport.is_reading(), self.bytes_in
        why = deadlines.missed(
            now_ms, connection, limits, unsent_bytes=unsent_bytes, bytes_in=bytes_in, is_read=is_read
        )
        if why:
            self._end_reason = why
            log_dropped(self._server.peer_log, self, why, unsent_bytes)
            self.transport.abort()
        return bool(why)

    def _timer_fired(self) -> None:
        self._is_timed = False
        now_ms = time.monotonic_ns() // 1_000_000
        # An overdue sweep comes next; it extends the deadlines before it checks them.
        if not self.transport.is_closing() and not self._server.stall_ms(now_ms):
            self.check_deadlines(now_ms)
