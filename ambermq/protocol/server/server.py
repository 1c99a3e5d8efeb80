"""The server: one event loop, its listeners, and the virtual hosts that share them.

    readable socket -> Connection.receive -> ConnectionGateway -> commands in the queue    connections/
    ticks, browsing links, and the ends of syncs and reads                                 vhosts/runner.py
    virtual hosts are created and deleted while others are served                          vhosts/lifecycle.py

This package is the outermost of protocol/, and the only one that uses asyncio.

Rule 1. No handler blocks: it parses a read and queues commands. The kernel and the threads of the logs wait for the
        disk.
Rule 2. A connection is written once a tick. A peer that does not read gets no deliveries, and later is not read.
Rule 3. A connection belongs to the default virtual host, until its open names another one.
Rule 4. A connection is admitted before it gets a transport. The logs have a reserve of descriptors (descriptors.py).
Rule 5. A failed log ends the server: no message is settled afterwards, and `failure` holds the exception.
"""

import asyncio
import sys
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import count
from socket import socket as Socket  # noqa: N812 - the connections of this module are called sockets
from typing import Any, Final, final

import structlog

from ambermq.engine.config import EngineConfig
from ambermq.engine.effects import Effect
from ambermq.log.manifest.vhost_manifest import DEFAULT_VHOST
from ambermq.log.storage.heap import release_free_memory
from ambermq.protocol.amqp10.framing.frame_reader import ReadBuffer
from ambermq.protocol.amqp10.limits import ConnectionLimits
from ambermq.protocol.amqp10.performatives.classes import Error
from ambermq.protocol.amqp10.spec import ConnectionCondition
from ambermq.protocol.amqp10.types.values import Symbol
from ambermq.protocol.auth.access import EVERYTHING, Access
from ambermq.protocol.auth.audit import NO_AUDIT, AuditTrail
from ambermq.protocol.auth.exchange import Authenticator
from ambermq.protocol.auth.peer import Peer
from ambermq.protocol.gateway.gateway import Gateway
from ambermq.protocol.gateway.links.link_peer import LinkPeer
from ambermq.protocol.gateway.opening.user_connections import UserConnections
from ambermq.protocol.gateway.recovery.suspended_memory import SuspendedMemory
from ambermq.protocol.management.access.rules import RulePort
from ambermq.protocol.management.access.users import UserPort
from ambermq.protocol.management.administration.configuration import ConfigPort
from ambermq.protocol.management.vhosts import AnswerPort
from ambermq.protocol.resources.process_usage import ProcessUsage, process_usage
from ambermq.protocol.resources.resource import Resource
from ambermq.protocol.resources.resource_watch import ResourceWatch
from ambermq.protocol.server.clock import Clock
from ambermq.protocol.server.connections.admission import Admission
from ambermq.protocol.server.connections.connection_transport import SWEEP_MS, ConnectionTransport
from ambermq.protocol.server.connections.deadline_sweep import DeadlineSweep
from ambermq.protocol.server.connections.memory_guard import MemoryGuard
from ambermq.protocol.server.descriptors import connections_for
from ambermq.protocol.server.limited_log import LimitedLog
from ambermq.protocol.server.listeners.acceptor import PAUSE_SECONDS, Acceptor
from ambermq.protocol.server.listeners.listener import Listener
from ambermq.protocol.server.listeners.listener_config import ListenerConfig
from ambermq.protocol.server.listeners.peer_address import LOCAL
from ambermq.protocol.server.listeners.tls_contexts import TlsContexts
from ambermq.protocol.server.listeners.transport_layers import LayerFault, TransportLayers
from ambermq.protocol.server.vhosts.lifecycle import VhostLifecycle, Vhosts
from ambermq.protocol.server.vhosts.runner import VhostRunner
from ambermq.protocol.server.vhosts.services import VhostServices
from ambermq.protocol.server_limits import ServerLimits

__all__ = ["Server"]

_SPACE_BYTES_MIN: Final = 32 << 20
"""With less address space left, connections are closed before an allocation fails."""
_UNBOUNDED: Final = 1 << 62
"""The budget of a server whose owner has measured no limit."""
_POLL_MS: Final = 10
"""The interval at which a stopping server checks for open connections."""
_DESCRIPTORS_MAX: Final = 1 << 20
"""The limit of open files of a process that names none: more than a server needs."""


@final
class Server:
    """The listeners in front of the engines of all virtual hosts."""

    def __init__(
        self,
        services: Mapping[str, VhostServices],
        vhosts: Vhosts,
        *,
        limits: ConnectionLimits,
        server_limits: ServerLimits,
        container_id: str,
        authenticator: Authenticator,
        access: Access = EVERYTHING,
        rules: RulePort | None = None,
        address_space_left: Callable[[], int] = lambda: _UNBOUNDED,
        descriptors_max: int = _DESCRIPTORS_MAX,
        process_memory_max: int = _UNBOUNDED,
        usage: Callable[[], ProcessUsage] = process_usage,
        accounts: UserPort | None = None,
        audit: AuditTrail = NO_AUDIT,
        configuration: ConfigPort | None = None,
        clock: Clock | None = None,
        listener_config: ListenerConfig | None = None,
        tls: TlsContexts | None = None,
        trace: Callable[[Gateway], None] | None = None,
    ) -> None:
        """Serve the virtual hosts of `services`, which include the default one; `vhosts` creates and deletes others.

        `descriptors_max` is the process's limit of open files, `process_memory_max` the memory that it may use, and
        `usage` returns what it uses of both. `accounts` carries out commands about users, and `audit`
        notes who did what. `clock` is the machine's if it is None. `tls` are the certificates of listeners with TLS.
        `trace` adds the spans of messages to a gateway; None without telemetry.
        """
        self.limits = limits
        self.server_limits = server_limits
        self.container_id = container_id
        self.authenticator = authenticator
        self._accounts = accounts
        self._tls = tls
        self._trace = trace
        self._audit = audit
        self.access = access
        self.rules = rules
        self.layers = TransportLayers(
            listener_config or ListenerConfig(), tls, handshake_ms=server_limits.handshake_ms, close_ms=limits.close_ms
        )
        """The layers below AMQP."""
        self.address_space_left = address_space_left
        self.read_buffer = ReadBuffer()
        self.sockets: dict[LinkPeer, ConnectionTransport] = {}
        self.hosts: dict[str, VhostRunner] = {}
        """The virtual hosts by name."""
        self.memory = MemoryGuard(
            self,
            SuspendedMemory(self.hosts),
            bytes_max=server_limits.memory_bytes_max or _UNBOUNDED,
            message_bytes_max=limits.message_bytes_max,
            stall_ms=server_limits.memory_stall_ms,
        )
        """The guard of the memory that all connections hold."""
        self.watch = ResourceWatch(
            self, server_limits, memory_max=process_memory_max, descriptors_max=descriptors_max, usage=usage
        )
        """The watch of the process's memory and descriptors."""
        self._low: frozenset[Resource] = frozenset()
        self._memory_release: asyncio.Future[None] | None = None
        self.descriptors_max = descriptors_max
        """The process's limit of open files."""
        self.clock = clock or Clock()
        """The clock."""
        self.clock_ns = self.clock.monotonic_ns
        """The monotonic clock."""
        self.epoch_us = self.clock.epoch_us
        """The difference between `now_us` and that clock."""
        self.peer_log = LimitedLog(self.clock_ns)
        """The log lines that peers can cause."""
        self.admission: Admission[ConnectionTransport] = Admission(server_limits)
        """The count of connections, by what they have proved."""
        self.users = UserConnections(server_limits.user_connections_max)
        """The connections of each user, in all virtual hosts."""
        self.failure: Exception | None = None
        """Why the server failed; None while it has not."""
        self.stopped = asyncio.Event()
        """Set at the end of the server, by `stop` or by a failure."""
        self.configuration = configuration
        """Carries out commands about the configuration; None without one."""
        self.lifecycle = VhostLifecycle(self, vhosts)
        self.hosts |= {name: self._host(name, each) for name, each in services.items()}
        self.default = self.hosts[DEFAULT_VHOST]
        self._loop = asyncio.get_running_loop()
        self._acceptor = Acceptor(self._accept, self._accept_failed)
        self._connecting: set[asyncio.Task[Any]] = set()
        self._is_stopping = False
        self._numbers = count(1)
        self._started_us = 0
        """When it began to listen, by the time of day."""
        self._sweeper: asyncio.TimerHandle | None = None
        self._sweep_due_ms = 0
        self._deadlines = DeadlineSweep(self._loop, self.sockets, self.stall_ms, interval_ms=SWEEP_MS)

    def start(self, listeners: Sequence[Listener]) -> None:
        """Listen on bound sockets. Raises OSError."""
        self._limit_connections()
        self._started_us = self.now_us()
        self._acceptor.start(listeners)
        for each in self.hosts.values():
            each.start()
        self.watch.poll(self.now_ms())
        self._sweep_later()

    async def stop(self) -> None:
        """Stop: refuse connections, send everything promised, and close all connections with amqp:connection:forced."""
        self._is_stopping = True
        self._acceptor.close()
        await self.lifecycle.end()
        # Only what was read is settled: otherwise a sender that never pauses would prevent the end.
        for each in self.hosts.values():
            each.forget_paused()
        for socket in self.sockets.values():
            socket.transport.pause_reading()
        await self._flush_hosts()
        error = Error(condition=Symbol(ConnectionCondition.CONNECTION_FORCED), description="the broker is stopping")
        for socket in list(self.sockets.values()):
            socket.close(error)
        await self._flush_hosts()
        # Further input is read and ignored: a peer that blocks in a send would never read our close.
        for socket in list(self.sockets.values()):
            socket.resume_reading()
        await self._await_disconnects(self.server_limits.goodbye_ms)
        for socket in list(self.sockets.values()):
            socket.close_when_sent()
        await self._await_disconnects(self.server_limits.shutdown_ms)
        for socket in list(self.sockets.values()):
            socket.transport.abort()
        self._end()

    def reconfigure(self, limits: ConnectionLimits, server_limits: ServerLimits, engine: EngineConfig) -> None:
        """Use other limits from their next use on. Open connections keep theirs, and none is closed."""
        self.limits, self.server_limits = limits, server_limits
        self.admission.reconfigure(server_limits)
        self.users.reconfigure(server_limits.user_connections_max)
        self._limit_connections()
        self.watch.reconfigure(server_limits)
        now_us = self.now_us()
        for host in self.hosts.values():
            host.reconfigure(server_limits, engine, now_us)
            host.tick_soon()

    @property
    def is_ending(self) -> bool:
        """Return whether the server stops or has failed."""
        return self._is_stopping or self.failure is not None

    def stall_ms(self, now_ms: int) -> int:
        """Return how long this process has stood still, as on a suspended machine: by so much the sweep is late.

        The bytes that peers sent in that time lie unread.
        """
        return max(now_ms - self._sweep_due_ms, 0)

    def call_later(self, delay_ms: int, callback: Callable[[], None]) -> None:
        """Schedule a call after a delay."""
        self._loop.call_later(delay_ms / 1000, callback)

    def next_id(self) -> int:
        """Return the number of a new connection."""
        return next(self._numbers)

    def now_ms(self) -> int:
        """Return the time of the monotonic clock in milliseconds."""
        return self.clock_ns() // 1_000_000

    def guarded(self) -> Collection[ConnectionTransport]:
        """Return the connections of all virtual hosts."""
        return self.sockets.values()

    def set_low(self, resource: Resource, *, is_low: bool) -> None:
        """Hold the producers of all virtual hosts back because of a resource, or end that."""
        self._low = self._low | {resource} if is_low else self._low - {resource}
        self.admission.lacks_descriptors = Resource.DESCRIPTORS in self._low
        for host in self.hosts.values():
            host.gateway.set_low(resource, is_low=is_low)
            host.tick_soon()

    def release_memory(self) -> None:
        """Return free memory to the system, in a thread; nothing if one does it already."""
        if self._memory_release is None or self._memory_release.done():
            self._memory_release = self._loop.run_in_executor(None, release_free_memory)

    def call_soon(self, callback: Callable[[], None]) -> None:
        """Schedule a call for the next iteration of the event loop."""
        self._loop.call_soon(callback)

    def now_us(self) -> int:
        """Return the time of day at the start and the time elapsed since, in microseconds. It never goes back."""
        return self.clock.now_us()

    def set_access(self, access: Access) -> None:
        """Change the rules of all virtual hosts, and end the links that they do not allow any more."""
        self.access = access
        for host in self.hosts.values():
            host.gateway.set_access(access)
            host.tick_soon()

    def answer(self, gateway: AnswerPort, effects: Iterable[Effect]) -> None:
        """Send an answer, unless the virtual host of the gateway was deleted with its connections."""
        self.lifecycle.send(gateway, effects)

    def add_host(self, name: str, services: VhostServices) -> None:
        """Begin to serve a virtual host."""
        self.hosts[name] = self._host(name, services)
        self.hosts[name].correct_clock(self.clock.correction_us, None)
        self.hosts[name].start()
        self._limit_connections()

    def remove_host(self, name: str, error: Error) -> VhostServices:
        """Stop serving a virtual host, close its connections, and return its services."""
        host = self.hosts.pop(name)
        for socket in self.sockets.values():
            if socket.host is host:
                # The default virtual host sends the close frames, since this one ends.
                socket.close_with_vhost(self.default, error)
        host.end()
        self._limit_connections()
        return host.services

    def connections_of(self, username: str) -> int:
        """Return the number of connections of a user, in all virtual hosts."""
        return sum(peer.identity.username == username for peer in self.sockets)

    def close_user(self, username: str, error: Error) -> None:
        """Close the connections of a user, in all virtual hosts."""
        for socket in list(self.sockets.values()):
            if socket.peer.identity.username == username:
                socket.close(error)

    def _host(self, name: str, services: VhostServices) -> VhostRunner:
        host = VhostRunner(self, name, services, container_id=self.container_id, access=self.access)
        for resource in self._low:
            host.gateway.set_low(resource, is_low=True)
        host.gateway.accounts = self._accounts
        host.gateway.audit = self._audit
        host.gateway.configuration = self.configuration
        host.gateway.rules = self.rules
        admission, tls, watch = self.admission, self._tls, self.watch
        host.gateway.figures |= {
            "certificate_expiry_seconds": lambda: tls.expiry_s if tls is not None else None,
            "connections": lambda: admission.count,
            "connections_dropped": lambda: admission.dropped,
            "connections_max": lambda: admission.connections_max,
            "connections_refused": lambda: admission.refused,
            "connections_unauthenticated": lambda: admission.strangers,
            "descriptors_are_low": lambda: watch.descriptors.is_low,
            "descriptors_free": lambda: watch.descriptors_free,
            "descriptors_free_low": lambda: watch.descriptors.marks.begin,
            "descriptors_free_resume": lambda: watch.descriptors.marks.end,
            "descriptors_max": lambda: self.descriptors_max,
            "interpreter_blocks": sys.getallocatedblocks,
            "started_us": lambda: self._started_us or None,
            "memory_bytes": lambda: self.memory.budget.held_bytes,
            "memory_bytes_max": lambda: self.memory.budget.bytes_max,
            "memory_closed": lambda: self.memory.closed_count,
            "memory_is_low": lambda: self.memory.is_low,
            "process_memory_bytes": lambda: watch.usage.memory_bytes,
            "process_memory_high_bytes": lambda: watch.memory.marks.begin,
            "process_memory_is_low": lambda: watch.memory.is_low,
            "process_memory_low_bytes": lambda: watch.memory.marks.end,
            "telemetry_spans_dropped": lambda: 0,
        }
        if self._trace is not None:
            self._trace(host.gateway)
        return host

    def _limit_connections(self) -> None:
        """Lower the limit of connections to what the descriptors suffice for."""
        wanted, possible = self.server_limits.connections_max, connections_for(len(self.hosts), self.descriptors_max)
        found = min(wanted, possible)
        if found < wanted and found != self.admission.connections_max:
            structlog.get_logger().warning(
                "connections_max lowered",
                connections_max=found,
                configured=wanted,
                reason=f"{self.descriptors_max} open files, of which {self.descriptors_max - possible} are reserved",
                advice="raise the limit of open files: ulimit -n, or LimitNOFILE of systemd",
            )
        self.admission.connections_max = found

    def _accept(self, stream: Socket, name: Any, listener: Listener) -> None:
        """Admit an accepted connection, or close it."""
        try:
            peer = listener.peer_of(stream, name)
        except OSError:
            stream.close()
            return
        if peer is None:
            stream.close()
            self.peer_log.warning("connection refused", LOCAL, reason="the socket belongs to another user")
            return
        is_proxied = self.layers.is_proxy(name)
        # A trusted proxy has no limit per address: its clients have.
        socket = ConnectionTransport(self, replace(peer, address=LOCAL) if is_proxied else peer)
        if not self._is_admitted(socket):
            stream.close()
            return
        if is_proxied or listener.has_layers:
            task = self._loop.create_task(self._connect_layers(stream, socket, listener, peer if is_proxied else None))
            socket.handshake = task
        else:
            task = self._loop.create_task(self._connect(stream, socket))
        # The event loop holds only weak references to tasks.
        self._connecting.add(task)
        task.add_done_callback(self._connecting.discard)

    def _is_admitted(self, socket: ConnectionTransport) -> bool:
        """Count a connection; log why it is refused, if it is."""
        refusal = self.admission.admit(socket, self.clock_ns() // 1_000_000)
        if refusal:
            self.peer_log.warning("connection refused", socket.address, reason=refusal)
        return not refusal

    async def _connect(self, stream: Socket, socket: ConnectionTransport) -> None:
        """Create the transport of an accepted connection."""
        try:
            await self._loop.connect_accepted_socket(lambda: socket, stream)
        except OSError as error:
            stream.close()
            socket.never_connected()
            self.peer_log.warning("connection failed", socket.address, reason=str(error))

    async def _connect_layers(
        self, stream: Socket, socket: ConnectionTransport, listener: Listener, proxy: Peer | None
    ) -> None:
        """Create the transport of a connection behind a proxy, TLS or WebSocket."""
        deadline = self.layers.deadline()
        try:
            if proxy is not None:
                client = await self.layers.client_of(stream, proxy, deadline)
                socket.never_connected()
                socket.identify(client)
                if not self._is_admitted(socket):
                    socket.refused()
                    stream.close()
                    return
            await self.layers.connect(listener, stream, socket, deadline)
        except (LayerFault, OSError) as error:
            socket.never_connected()
            stream.close()
            self.peer_log.warning("connection failed", socket.address, peer=socket.peer_info.name, reason=str(error))
        except asyncio.CancelledError:
            stream.close()
            raise
        except Exception as mistake:  # noqa: BLE001 - a bug, which must not keep the place of a connection for ever
            socket.never_connected()
            stream.close()
            self.peer_log.error("connection failed", socket.address, peer=socket.peer_info.name, error=repr(mistake))
        finally:
            socket.handshake = None

    def _accept_failed(self, error: OSError) -> None:
        self.peer_log.warning("accepting paused", "", reason=str(error), seconds=PAUSE_SECONDS)

    def _sweep(self) -> None:
        step = self.clock.follow()
        self.epoch_us = self.clock.epoch_us
        for host in self.hosts.values():
            host.correct_clock(self.clock.correction_us, step)
        now_ms = time.monotonic_ns() // 1_000_000
        self._deadlines.begin(now_ms)
        self.memory.survey_soon()
        self.memory.set_tight(is_tight=self.address_space_left() < _SPACE_BYTES_MIN)
        self.watch.poll(now_ms)
        self.peer_log.sweep()
        self.read_buffer.trim()
        for host in self.hosts.values():
            host.sweep(now_ms, self.now_us())
        if not self.stopped.is_set():
            self._sweep_later()

    def _sweep_later(self) -> None:
        self._sweep_due_ms = time.monotonic_ns() // 1_000_000 + SWEEP_MS
        self._sweeper = self._loop.call_later(SWEEP_MS / 1000, self._sweep)

    async def _flush_hosts(self) -> None:
        deadline = time.monotonic() + self.server_limits.shutdown_ms / 1000
        while self.failure is None and time.monotonic() < deadline:
            for host in self.hosts.values():
                host.engine.make_due()
                host.run(host.step)
            if all(host.is_quiet for host in self.hosts.values()):
                return
            await asyncio.sleep(0.001)

    async def _await_disconnects(self, wait_ms: int) -> None:
        """Wait for the end of all connections, at most `wait_ms`."""
        for _ in range(0, wait_ms, _POLL_MS):
            if not self.sockets:
                return
            await asyncio.sleep(_POLL_MS / 1000)

    def fail(self, failure: Exception) -> None:
        """End at once because of a failure: no further promise may close_with_vhost."""
        self.failure = failure
        for socket in list(self.sockets.values()):
            socket.transport.abort()
        self._end()

    def _end(self) -> None:
        self._acceptor.close()
        for task in self._connecting:
            task.cancel()
        for host in self.hosts.values():
            host.end()
        if self._sweeper is not None:
            self._sweeper.cancel()
        self._deadlines.end()
        self.peer_log.close()
        self.stopped.set()
