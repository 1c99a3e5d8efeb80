"""One virtual host that is served: its engine, its gateway, its ticks and timers.

    a socket was read, `due`    -> one tick: engine.step -> effects -> links -> one joined write a connection
    the log's file descriptor   -> engine.completed -> effects -> links -> writes
    links that take nothing     -> a turn an iteration of the event loop, beside the ticks -> writes

Rule 1. Nothing of it is another host's: each has its own log, gateway, timer, and sockets that are paused.
Rule 2. While too much of its log is unsynced no socket of it is read; the sync alone resumes them.
Rule 3. A log that fails ends the server, and with it all hosts.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import structlog

from ambermq.engine.history.background_queries import BackgroundQueries
from ambermq.engine.loop.durable_loop import ALONE, FOREVER_US, FULL, LATER, SOON, Due, DurableLoop
from ambermq.protocol.gateway.gateway import Gateway

if TYPE_CHECKING:
    from ambermq.protocol.server.connection_transport import ConnectionTransport
    from ambermq.protocol.server.server import Server

__all__ = ["VhostRunner", "VhostServices"]


@final
@dataclass(frozen=True, slots=True)
class VhostServices:
    """What a virtual host stands on; whoever made it closes it."""

    engine: DurableLoop
    """Recovered: it may serve."""
    beside: BackgroundQueries
    """Answers what would hold the loop up."""

    def close(self) -> None:
        """Wait for what runs beside it, and close the log. Raises LogFailed."""
        self.beside.close()
        self.engine.log.close()


@final
class VhostRunner:
    """One virtual host of a server; the event loop's thread calls everything."""

    __slots__ = (
        "_is_over",
        "_is_tick_due",
        "_is_timer_brief",
        "_is_turn_due",
        "_loop",
        "_paused",
        "_server",
        "_timer",
        "_timer_us",
        "engine",
        "gateway",
        "ground",
        "is_congested",
        "name",
    )

    def __init__(
        self,
        server: "Server",
        name: str,
        ground: VhostServices,
        *,
        container_id: str,
        may_read_log: Callable[[str | None], bool],
    ) -> None:
        self.name = name
        self.ground = ground
        self.engine = ground.engine
        self.gateway = Gateway(
            ground.engine,
            server.server_limits,
            container_id=container_id,
            beside=ground.beside,
            may_read_log=may_read_log,
            vhost=name,
            vhosts=server.hosting,
        )
        self.is_congested = False
        """Too much of its log was unsynced when a tick had last written: no socket of it is to be read."""
        self._server = server
        self._loop = asyncio.get_running_loop()
        self._is_over = False
        self._is_tick_due = False
        self._is_timer_brief = False
        self._is_turn_due = False
        self._timer: asyncio.TimerHandle | None = None
        self._timer_us = FOREVER_US
        self._paused: list[ConnectionTransport] = []

    def start(self) -> None:
        """Watch the log, and keep the deadline that the engine's start has left: nobody may come for long."""
        self._loop.add_reader(self.engine.fileno(), self.log_has_news)
        self._loop.add_reader(self.ground.beside.fileno(), self._take_answers)
        if self.engine.deadline_us < self._timer_us:
            self._arm()

    def end(self) -> None:
        """Do nothing any more."""
        if not self._is_over:
            self._is_over = True
            self._loop.remove_reader(self.engine.fileno())
            self._loop.remove_reader(self.ground.beside.fileno())
            if self._timer is not None:
                self._timer.cancel()

    @property
    def is_quiet(self) -> bool:
        """Whether everything has left that was promised."""
        return not self.engine.is_due and not self.engine.is_waiting

    def tick_soon(self) -> None:
        """Let a tick follow when this iteration of the event loop has read everything."""
        if not self._is_tick_due:
            self._is_tick_due = True
            self._loop.call_soon(self.tick)

    def tick(self, now_us: int = 0) -> None:
        """End the tick: decide, write, let go what may leave, flush. `now_us`: the time, where the caller knows it."""
        self._is_tick_due = False
        if self._is_over:
            return
        try:
            effects = self.engine.step(now_us or self._server.now_us())
        except Exception as failure:  # noqa: BLE001 - a failed log, or our mistake: nothing may be promised on top
            self._server.fail(failure)
            return
        self.is_congested = self.engine.log.is_congested
        if effects:
            self.gateway.carry_out(effects)
        self._after_effects()

    def tick_when(self, due: Due, now_us: int) -> None:
        """Let a tick follow when the engine wants it, by what was read just now."""
        if due == LATER:
            engine = self.engine
            engine.put_off(now_us)
            if engine.deadline_us < self._timer_us:
                self._arm()
        elif due == SOON:
            self.tick_soon()
        elif due == ALONE and self.engine.may_wait(now_us):
            self._is_timer_brief = True
            self._arm()
        else:
            self.tick(now_us)
            if due == FULL:
                # This iteration may go on to read for long.
                self.log_has_news()

    def pause_reading(self, socket: "ConnectionTransport") -> None:
        """Read a socket no more until a sync returns."""
        socket.transport.pause_reading()
        self._paused.append(socket)

    def forget_paused(self) -> None:
        """Resume no socket any more."""
        self._paused.clear()

    def log_has_news(self) -> None:
        """Take what the log has finished."""
        if self._is_over:
            return
        try:
            effects = self.engine.completed(self._server.now_us())
        except Exception as failure:  # noqa: BLE001 - as in tick
            self._server.fail(failure)
            return
        if effects:
            self.gateway.carry_out(effects)
        self.gateway.sources.heard()
        if self._paused or self.is_congested:
            self._resume_reading()
        self._after_effects()

    def turn_soon(self) -> None:
        """Let links that take nothing have a turn in the next iteration of the event loop."""
        if not self._is_turn_due:
            self._is_turn_due = True
            self._loop.call_soon(self._turn)

    def sweep(self, now_ms: int) -> None:
        """Look at what nobody tells of: the disk's room, snapshots that are due, and links that last too long."""
        self._look_after_snapshots()
        for fault in self.engine.log.take_faults():
            structlog.get_logger().warning("no room given back", vhost=self.name, reason=fault)
        self.gateway.sources.look_at_clock(now_ms)
        room = self.engine.log.room_bytes()
        self.gateway.set_room_low(is_low=room < self._server.server_limits.room_low_bytes)
        self._resume_reading()
        self._flush()

    def _look_after_snapshots(self) -> None:
        """Let one that is due be taken though nobody comes, and log what nobody waits for."""
        snapshots = self.engine.snapshots
        for fault in snapshots.faults:
            structlog.get_logger().warning("no snapshot", vhost=self.name, reason=fault)
        snapshots.faults.clear()
        if snapshots.is_due(self._server.now_us()):
            self.tick_soon()

    def _turn(self) -> None:
        self._is_turn_due = False
        if not self._is_over:
            self.gateway.sources.serve()
            self._after_effects()

    def _take_answers(self) -> None:
        self.gateway.sources.take_answers()
        self._after_effects()

    def _resume_reading(self) -> None:
        self.is_congested = self.engine.log.is_congested
        if not self.is_congested:
            paused, self._paused = self._paused, []
            for socket in paused:
                socket.resume_reading()

    def _after_effects(self) -> None:
        gateway, engine = self.gateway, self.engine
        if gateway.mistakes:
            self._log_mistakes()
        if engine.is_due:
            self.tick_soon()
        if gateway.sources.ready:
            self.turn_soon()
        if gateway.touched:
            self._flush()
        if engine.deadline_us < self._timer_us or (self._is_timer_brief and engine.deadline_us > self._timer_us):
            # Set back, too: a message that has found company would wake the loop for nothing.
            self._is_timer_brief = False
            self._arm()

    def _log_mistakes(self) -> None:
        for mistake in self.gateway.mistakes:
            structlog.get_logger().error("a command failed", vhost=self.name, error=repr(mistake), exc_info=mistake)
        self.gateway.mistakes.clear()

    def _arm(self) -> None:
        """Let the engine have its tick when it wants one though nobody comes."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer_us = self.engine.deadline_us
        # In whole milliseconds, as event loops count: for the rest of one a timer would fire again and again.
        delay_ms = -(-max(self._timer_us - self._server.now_us(), 0) // 1000)
        self._timer = self._loop.call_later(delay_ms / 1000, self._timer_fired)

    def _timer_fired(self) -> None:
        self._timer, self._timer_us = None, FOREVER_US
        if self.engine.deadline_us <= self._server.now_us():
            self.tick()
        elif self.engine.deadline_us < FOREVER_US:
            # A tick has done meanwhile what it was set for.
            self._arm()

    def _flush(self) -> None:
        touched, sockets = self.gateway.touched, self._server.sockets
        while touched:
            peer, _ = touched.popitem()
            socket = sockets.get(peer)
            if socket is not None:
                socket.flush()
