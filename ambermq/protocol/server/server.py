"""The server: one event loop, one port, and the virtual hosts behind it.

    readable socket -> Connection.receive -> Peer -> commands gathered in the engine of its virtual host (accepted.py)
    ticks, turns and what the logs have finished                                                        (host.py)
    virtual hosts come and go while others are served                                                   (hosting.py)

With these files the outermost of protocol/, and all that knows asyncio.

Rule 1. No handler blocks: reads are parsed, commands gathered; the kernel and the logs' threads wait for the disk.
Rule 2. A connection is written once a tick. One whose peer does not read gets no deliveries, later is not read either.
Rule 3. A connection belongs to the default virtual host until its open names another one that there is.
Rule 4. A log that failed ends the server: nothing is settled any more, and `failure` says why.
"""

import asyncio
import time
from collections.abc import Callable, Mapping
from typing import Final, final

from ambermq.log.manifest.vhost_manifest import DEFAULT_VHOST
from ambermq.protocol.amqp10.connection.sasl import SaslServer
from ambermq.protocol.amqp10.framing.frame_reader import ReadBuffer
from ambermq.protocol.amqp10.limits import ConnectionLimits
from ambermq.protocol.amqp10.performatives.classes import Error
from ambermq.protocol.amqp10.spec import ConnectionCondition
from ambermq.protocol.amqp10.types.values import Symbol
from ambermq.protocol.gateway.connection_gateway import Authenticator
from ambermq.protocol.gateway.links.link_peer import LinkPeer
from ambermq.protocol.server.connection_transport import SWEEP_MS, ConnectionTransport
from ambermq.protocol.server.vhost_lifecycle import VhostLifecycle, Vhosts
from ambermq.protocol.server.vhost_runner import VhostRunner, VhostServices
from ambermq.protocol.server_limits import ServerLimits

__all__ = ["Server"]

_LOOK_MS: Final = 10
"""Between looks at who is still connected, when the server stops."""


@final
class Server:
    """One listening socket before the engines of all virtual hosts."""

    def __init__(
        self,
        grounds: Mapping[str, VhostServices],
        vhosts: Vhosts,
        *,
        limits: ConnectionLimits,
        server_limits: ServerLimits,
        container_id: str,
        authenticate: Authenticator,
        sasl: SaslServer,
        allow_bare: bool,
        may_read_log: Callable[[str | None], bool],
    ) -> None:
        """Serve the virtual hosts of `grounds`, the default one among them; `vhosts` makes and deletes others."""
        self.limits = limits
        self.server_limits = server_limits
        self.container_id = container_id
        self.authenticate = authenticate
        self.sasl = sasl
        self.allow_bare = allow_bare
        self.may_read_log = may_read_log
        self.read_buffer = ReadBuffer()
        self.sockets: dict[LinkPeer, ConnectionTransport] = {}
        self.failure: Exception | None = None
        """Why a log can no longer be written."""
        self.stopped = asyncio.Event()
        """Set when the server is down, by `stop` or by a failure."""
        self.hosting = VhostLifecycle(self, vhosts)
        self.hosts = {name: self._host(name, ground) for name, ground in grounds.items()}
        """By name."""
        self.default = self.hosts[DEFAULT_VHOST]
        self._loop = asyncio.get_running_loop()
        self._server: asyncio.Server | None = None
        self._is_stopping = False
        self.clock_ns = time.monotonic_ns
        """The monotonic clock."""
        self.epoch_us = _wall_ahead_us()
        """What `now_us` is ahead of that clock."""
        self._sweeper: asyncio.TimerHandle | None = None
        self._sweep_due_ms = 0

    async def start(self, host: str, port: int) -> int:
        """Listen; returns the port, which the system has picked where 0 was asked for. Raises OSError."""
        self._server = await self._loop.create_server(lambda: ConnectionTransport(self), host, port, backlog=1024)
        for each in self.hosts.values():
            each.start()
        self._sweep_later()
        listening: int = self._server.sockets[0].getsockname()[1]
        return listening

    async def stop(self) -> None:
        """Accept nothing more, close every connection with amqp:connection:forced, let everything promised leave."""
        self._is_stopping = True
        if self._server is not None:
            self._server.close()
        await self.hosting.end()
        # Settled is what was read. A sender that never pauses would keep that from ending.
        for each in self.hosts.values():
            each.forget_paused()
        for socket in self.sockets.values():
            socket.transport.pause_reading()
        await self._settle_everything()
        error = Error(condition=Symbol(ConnectionCondition.CONNECTION_FORCED), description="the broker is stopping")
        for socket in list(self.sockets.values()):
            socket.close(error)
        await self._settle_everything()
        # What peers go on to send is read and ignored: who is stuck in sending would never read our close.
        for socket in list(self.sockets.values()):
            socket.resume_reading()
        await self._all_gone_by(self.server_limits.goodbye_ms)
        for socket in list(self.sockets.values()):
            socket.close_when_sent()
        await self._all_gone_by(self.server_limits.shutdown_ms)
        for socket in list(self.sockets.values()):
            socket.transport.abort()
        self._end()

    @property
    def is_crowded(self) -> bool:
        """Whether one connection more is one too many."""
        is_ending = self._is_stopping or self.failure is not None
        return is_ending or len(self.sockets) >= self.server_limits.connections_max

    def lost_ms(self, now_ms: int) -> int:
        """Return how long this process has stood still, as where its machine was stopped: the sweep is that late.

        What peers have sent meanwhile lies unread, or they stood still too.
        """
        return max(now_ms - self._sweep_due_ms, 0)

    def call_later(self, delay_ms: int, callback: Callable[[], None]) -> None:
        """Call back when so much time has passed."""
        self._loop.call_later(delay_ms / 1000, callback)

    def now_us(self) -> int:
        """Return the time of day in microseconds, by a clock that never goes back and follows forward in a second."""
        return time.monotonic_ns() // 1000 + self.epoch_us

    def add_host(self, name: str, ground: VhostServices) -> None:
        """Serve another virtual host."""
        self.hosts[name] = self._host(name, ground)
        self.hosts[name].start()

    def remove_host(self, name: str, error: Error) -> VhostServices:
        """Serve a virtual host no more and close its connections; returns what it stood on."""
        host = self.hosts.pop(name)
        for socket in self.sockets.values():
            if socket.host is host:
                # The goodbyes are the default host's: nothing is left that this one would do for them.
                socket.leave(self.default, error)
        host.end()
        return host.ground

    def _host(self, name: str, ground: VhostServices) -> VhostRunner:
        return VhostRunner(self, name, ground, container_id=self.container_id, may_read_log=self.may_read_log)

    def _sweep(self) -> None:
        self.epoch_us = max(self.epoch_us, _wall_ahead_us())
        now_ms = time.monotonic_ns() // 1_000_000
        lost_ms = self.lost_ms(now_ms)
        for socket in list(self.sockets.values()):
            socket.excuse(lost_ms, now_ms)
            socket.look_at_clock(now_ms)
        self.read_buffer.trim()
        for host in self.hosts.values():
            host.sweep(now_ms, self.now_us())
        if not self.stopped.is_set():
            self._sweep_later()

    def _sweep_later(self) -> None:
        self._sweep_due_ms = time.monotonic_ns() // 1_000_000 + SWEEP_MS
        self._sweeper = self._loop.call_later(SWEEP_MS / 1000, self._sweep)

    async def _settle_everything(self) -> None:
        deadline = time.monotonic() + self.server_limits.shutdown_ms / 1000
        while self.failure is None and time.monotonic() < deadline:
            for host in self.hosts.values():
                host.engine.hurry()
                host.run(host.step)
            if all(host.is_quiet for host in self.hosts.values()):
                return
            await asyncio.sleep(0.001)

    async def _all_gone_by(self, wait_ms: int) -> None:
        """Wait for the end of all connections, but no longer than so."""
        for _ in range(0, wait_ms, _LOOK_MS):
            if not self.sockets:
                return
            await asyncio.sleep(_LOOK_MS / 1000)

    def fail(self, failure: Exception) -> None:
        """End at once: nothing may be promised any more."""
        self.failure = failure
        for socket in list(self.sockets.values()):
            socket.transport.abort()
        self._end()

    def _end(self) -> None:
        if self._server is not None:
            self._server.close()
        for host in self.hosts.values():
            host.end()
        if self._sweeper is not None:
            self._sweeper.cancel()
        self.stopped.set()


def _wall_ahead_us() -> int:
    """Return how far the time of day is ahead of the monotonic clock."""
    return (time.time_ns() - time.monotonic_ns()) // 1000
