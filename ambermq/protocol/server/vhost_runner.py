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
from typing import final

import structlog

from ambermq.engine.effects import Effect
from ambermq.engine.history.background_queries import BackgroundQueries
from ambermq.engine.loop.durable_loop import DurableLoop
from ambermq.engine.loop.schedule import FOREVER_US, FULL, LATER, NOW, SOON, Due
from ambermq.protocol.gateway.gateway import Gateway
from ambermq.protocol.server.vhost_server import VhostServer, VhostSocket

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
        "_completed",
        "_is_over",
        "_is_tick_due",
        "_is_turn_due",
        "_loop",
        "_paused",
        "_server",
        "_timer",
        "_timer_us",
        "engine",
        "gateway",
        "ground",
        "name",
        "schedule",
        "step",
    )

    def __init__(
        self,
        server: VhostServer,
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
        self._server = server
        self.schedule = ground.engine.schedule
        """When the engine wants a step; a transport asks it after each read."""
        self.step = ground.engine.step
        """The work of a tick."""
        self._completed = ground.engine.completed
        """The work after a sync or a read."""
        self._loop = asyncio.get_running_loop()
        self._is_over = False
        self._is_tick_due = False
        self._is_turn_due = False
        self._timer: asyncio.TimerHandle | None = None
        self._timer_us = FOREVER_US
        self._paused: list[VhostSocket] = []

    def start(self) -> None:
        """Watch the log, and keep the deadline that the engine's start has left: nobody may come for long."""
        self._loop.add_reader(self.engine.fileno(), self.run, self._completed)
        self._loop.add_reader(self.ground.beside.fileno(), self._take_answers)
        self.run(None)

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
        return not self.schedule.is_due and not self.engine.is_waiting

    def tick_soon(self) -> None:
        """Make a tick follow when this iteration of the event loop has read everything."""
        if not self._is_tick_due:
            self._is_tick_due = True
            self._loop.call_soon(self._tick_if_due)

    def after_read(self, due: Due, now_us: int) -> None:
        """Step now, soon or at the deadline, as the schedule's `due` says after a read."""
        if due >= NOW:
            self.run(self.step, now_us)
            if due == FULL:
                # This iteration may go on to read for long.
                self.run(self._completed, now_us)
        elif due == SOON:
            self.tick_soon()
        elif due == LATER:
            self.arm(now_us)

    def pause_reading(self, socket: VhostSocket) -> None:
        """Read a socket no more until a sync returns."""
        socket.transport.pause_reading()
        self._paused.append(socket)

    def forget_paused(self) -> None:
        """Resume no socket any more."""
        self._paused.clear()

    def turn_soon(self) -> None:
        """Let links that take nothing have a turn in the next iteration of the event loop."""
        if not self._is_turn_due:
            self._is_turn_due = True
            self._loop.call_soon(self._turn)

    def sweep(self, now_ms: int, now_us: int) -> None:
        """Poll what raises no event: the disk's room, snapshots that are due, and links that last too long.

        `now_ms` is of the monotonic clock, `now_us` the time of day.
        """
        self._look_after_snapshots(now_us)
        for fault in self.engine.log.take_faults():
            structlog.get_logger().warning("no room given back", vhost=self.name, reason=fault)
        self.gateway.sources.end_expired(now_ms)
        room = self.engine.log.room_bytes()
        self.gateway.set_room_low(is_low=room < self._server.server_limits.room_low_bytes)
        self._resume_reading()
        self.run(None, now_us)

    def _look_after_snapshots(self, now_us: int) -> None:
        """Let one that is due be taken though nobody comes, and log what nobody waits for."""
        snapshots = self.engine.snapshots
        for fault in snapshots.faults:
            structlog.get_logger().warning("no snapshot", vhost=self.name, reason=fault)
        snapshots.faults.clear()
        if snapshots.is_due(now_us):
            self.tick_soon()

    def _tick_if_due(self) -> None:
        if self._is_tick_due:
            self.run(self.step)

    def _turn(self) -> None:
        self._is_turn_due = False
        if not self._is_over:
            self.gateway.sources.serve()
            self.run(None)

    def _take_answers(self) -> None:
        self.gateway.sources.take_answers()
        self.run(None)

    def _resume_reading(self) -> None:
        if not self.engine.log.is_congested:
            paused, self._paused = self._paused, []
            for socket in paused:
                socket.resume_reading()

    def run(self, work: Callable[[int], list[Effect]] | None, now_us: int = 0) -> None:
        """Do some of the engine's work, carry out its effects, flush, and set the timer for the next deadline.

        `work` is None where only output may have come; `now_us` is the time, where the caller knows it.
        """
        if self._is_over:
            return
        server, gateway, schedule = self._server, self.gateway, self.schedule
        now_us = now_us or server.clock_ns() // 1000 + server.epoch_us
        if work is self.step:
            self._is_tick_due = False
        if work is not None:
            try:
                effects = work(now_us)
            except Exception as failure:  # noqa: BLE001 - a failed log, or our mistake: nothing may be promised on top
                server.fail(failure)
                return
            if effects:
                gateway.carry_out(effects)
        if gateway.mistakes:
            self._log_mistakes()
        sockets, touched = server.sockets, gateway.touched
        while touched:
            socket = sockets.get(touched.popitem()[0])
            if socket is not None:
                socket.flush()
        if work is self._completed:
            if self._paused:
                self._resume_reading()
            if gateway.sources.due_ms:
                gateway.sources.wake_waiters()
        if gateway.sources.ready:
            self.turn_soon()
        if schedule.has_urgent or schedule.dirty:
            self.tick_soon()
        if schedule.next_us < self._timer_us:
            self.arm(now_us)

    def _log_mistakes(self) -> None:
        for mistake in self.gateway.mistakes:
            structlog.get_logger().error("a command failed", vhost=self.name, error=repr(mistake), exc_info=mistake)
        self.gateway.mistakes.clear()

    def arm(self, now_us: int) -> None:
        """Set the timer for the next deadline, where it would fire later."""
        if self.schedule.next_us >= self._timer_us:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer_us = self.schedule.next_us
        # In whole milliseconds, as event loops count: for the rest of one a timer would fire again and again.
        delay_ms = -(-max(self._timer_us - now_us, 0) // 1000)
        self._timer = self._loop.call_later(delay_ms / 1000, self._timer_fired)

    def _timer_fired(self) -> None:
        self._timer, self._timer_us = None, FOREVER_US
        now_us, schedule = self._server.clock_ns() // 1000 + self._server.epoch_us, self.schedule
        if schedule.next_us <= now_us:
            self.run(self.step if schedule.write_by_us <= now_us else self.engine.sync_or_mark, now_us)
        elif schedule.next_us < FOREVER_US:
            # A tick has done meanwhile what it was set for.
            self.arm(now_us)
