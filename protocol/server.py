"""The server: one event loop, ticks, timers. With accepted.py the outermost of protocol/, and all that knows asyncio.

    readable socket -> Connection.receive -> Peer -> commands gathered in the engine
    end of the loop's iteration -> one tick: engine.step -> effects -> links -> one joined write a connection
    the log's file descriptor -> engine.completed -> effects -> links -> writes

Rule 1. No handler blocks: reads are parsed, commands gathered; the kernel and the log's threads wait for the disk.
Rule 2. A connection is written once a tick. One whose peer does not read gets no deliveries, later is not read either.
Rule 3. While too much is unsynced no socket is read; the sync alone resumes them.
Rule 4. A log that failed ends the server: nothing is settled any more, and `failure` says why.
"""

import asyncio
import time
from collections.abc import Callable
from typing import Final, final

import structlog

from engine.durable import DurableLoop
from protocol.accepted import SWEEP_S, Accepted
from protocol.gateway import Gateway
from protocol.limits import ConnectionLimits
from protocol.peer import Authenticator, Peer
from protocol.performatives import Error
from protocol.reader import ReadBuffer
from protocol.sasl import SaslServer
from protocol.server_limits import ServerLimits
from protocol.spec import ConnectionCondition
from protocol.values import Symbol

__all__ = ["Server"]

_LOOK_MS: Final = 10
"""Between looks at who is still connected, when the server stops."""


@final
class Server:
    """One listening socket before one engine."""

    def __init__(
        self,
        engine: DurableLoop,
        *,
        limits: ConnectionLimits,
        server_limits: ServerLimits,
        container_id: str,
        authenticate: Authenticator,
        sasl: SaslServer,
        allow_bare: bool,
    ) -> None:
        self.engine = engine
        self.limits = limits
        self.server_limits = server_limits
        self.gateway = Gateway(engine, server_limits, container_id=container_id)
        self.authenticate = authenticate
        self.sasl = sasl
        self.allow_bare = allow_bare
        self.read_buffer = ReadBuffer()
        self.sockets: dict[Peer, Accepted] = {}
        self.failure: Exception | None = None
        """Why the log can no longer be written."""
        self.stopped = asyncio.Event()
        """Set when the server is down, by `stop` or by a failure."""
        self._loop = asyncio.get_running_loop()
        self._server: asyncio.Server | None = None
        self._is_tick_due = False
        self._is_stopping = False
        self._timer: asyncio.TimerHandle | None = None
        self._timer_us = 0
        self._paused: list[Accepted] = []
        self._epoch_us = _wall_ahead_us()
        self._sweeper: asyncio.TimerHandle | None = None

    async def start(self, host: str, port: int) -> int:
        """Listen; returns the port, which the system has picked where 0 was asked for. Raises OSError."""
        self._server = await self._loop.create_server(lambda: Accepted(self), host, port, backlog=1024)
        self._loop.add_reader(self.engine.fileno(), self.log_has_news)
        self._sweeper = self._loop.call_later(SWEEP_S, self._sweep)
        listening: int = self._server.sockets[0].getsockname()[1]
        return listening

    async def stop(self) -> None:
        """Accept nothing more, close every connection with amqp:connection:forced, let everything promised leave."""
        self._is_stopping = True
        if self._server is not None:
            self._server.close()
        # Settled is what was read. A sender that never pauses would keep that from ending.
        self._paused.clear()
        for socket in self.sockets.values():
            socket.transport.pause_reading()
        await self._settle_everything()
        error = Error(condition=Symbol(ConnectionCondition.CONNECTION_FORCED), description="the broker is stopping")
        for socket in list(self.sockets.values()):
            socket.peer.lost()
            socket.peer.connection.close(error)
            self.gateway.touched[socket.peer] = None
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

    def call_later(self, delay_ms: int, callback: Callable[[], None]) -> None:
        """Call back when so much time has passed."""
        self._loop.call_later(delay_ms / 1000, callback)

    def _now_us(self) -> int:
        """Return the time of day in microseconds, by a clock that never goes back and follows forward in a second."""
        return time.monotonic_ns() // 1000 + self._epoch_us

    def tick_soon(self) -> None:
        """Let a tick follow when this iteration of the event loop has read everything."""
        if not self._is_tick_due:
            self._is_tick_due = True
            self._loop.call_soon(self.tick)

    def tick(self) -> None:
        """End the tick: decide, write, let go what may leave, flush."""
        self._is_tick_due = False
        if self.failure is not None:
            return
        try:
            effects = self.engine.step(self._now_us())
        except Exception as failure:  # noqa: BLE001 - a failed log, or our mistake: nothing may be promised on top
            self._fail(failure)
            return
        self.gateway.carry_out(effects)
        self._after_effects()

    def tick_later(self) -> None:
        """Let a tick follow soon enough for what nobody waits for."""
        self.engine.put_off(self._now_us())
        self._watch_clock()

    def pause_reading(self, socket: Accepted) -> None:
        """Read a socket no more until a sync returns."""
        socket.transport.pause_reading()
        self._paused.append(socket)

    def log_has_news(self) -> None:
        """Take what the log has finished; also asked in between when one socket has much to read."""
        if self.failure is not None:
            return
        try:
            effects = self.engine.completed(self._now_us())
        except Exception as failure:  # noqa: BLE001 - as in tick
            self._fail(failure)
            return
        self.gateway.carry_out(effects)
        self._resume_reading()
        self._after_effects()

    def _resume_reading(self) -> None:
        if self._paused and not self.engine.is_congested:
            paused, self._paused = self._paused, []
            for socket in paused:
                socket.resume_reading()

    def _after_effects(self) -> None:
        for mistake in self.gateway.mistakes:
            structlog.get_logger().error("a command failed", error=repr(mistake), exc_info=mistake)
        self.gateway.mistakes.clear()
        if self.engine.is_pending:
            self.tick_soon()
        self._flush()
        self._watch_clock()

    def _watch_clock(self) -> None:
        due_us = self.engine.deadline_us
        if due_us and not (self._timer_us and self._timer_us <= due_us):
            self._arm(due_us)

    def _arm(self, due_us: int) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer_us = due_us
        self._timer = self._loop.call_later(max(due_us - self._now_us(), 0) / 1e6, self._timer_fired)

    def _timer_fired(self) -> None:
        self._timer, self._timer_us = None, 0
        self.tick()

    def _flush(self) -> None:
        touched = self.gateway.touched
        while touched:
            peer, _ = touched.popitem()
            socket = self.sockets.get(peer)
            if socket is not None:
                socket.flush()

    def _sweep(self) -> None:
        self._epoch_us = max(self._epoch_us, _wall_ahead_us())
        now_ms = int(time.monotonic() * 1000)
        for socket in list(self.sockets.values()):
            socket.look_at_clock(now_ms)
        self.read_buffer.trim()
        self._look_after_snapshots()
        room = self.engine.log.room_bytes()
        self.gateway.set_room_low(is_low=room < self.server_limits.room_low_bytes)
        self._resume_reading()
        self._flush()
        if not self.stopped.is_set():
            self._sweeper = self._loop.call_later(SWEEP_S, self._sweep)

    def _look_after_snapshots(self) -> None:
        """Let one that is due be taken though nobody comes, and log what nobody waits for."""
        snapshots = self.engine.snapshots
        for fault in snapshots.faults:
            structlog.get_logger().warning("no snapshot", reason=fault)
        snapshots.faults.clear()
        if snapshots.is_due(self._now_us()):
            self.tick_soon()

    async def _settle_everything(self) -> None:
        deadline = time.monotonic() + self.server_limits.shutdown_ms / 1000
        while self.failure is None and time.monotonic() < deadline:
            self.tick()
            if not self.engine.is_pending and not self.engine.is_waiting:
                return
            await asyncio.sleep(0.001)

    async def _all_gone_by(self, wait_ms: int) -> None:
        """Wait for the end of all connections, but no longer than so."""
        for _ in range(0, wait_ms, _LOOK_MS):
            if not self.sockets:
                return
            await asyncio.sleep(_LOOK_MS / 1000)

    def _fail(self, failure: Exception) -> None:
        self.failure = failure
        for socket in list(self.sockets.values()):
            socket.transport.abort()
        self._end()

    def _end(self) -> None:
        if self._server is not None:
            self._server.close()
        self._loop.remove_reader(self.engine.fileno())
        for timer in (self._timer, self._sweeper):
            if timer is not None:
                timer.cancel()
        self.stopped.set()


def _wall_ahead_us() -> int:
    """Return how far the time of day is ahead of the monotonic clock."""
    return (time.time_ns() - time.monotonic_ns()) // 1000
