"""The driver of one virtual host: it runs the engine and the gateway in the event loop.

    after a read, if `due`           -> a tick: engine.step -> effects -> links -> one joined write a connection
    the log's descriptor is readable -> engine.completed -> effects -> links -> writes
    browsing links have work         -> one turn an iteration of the event loop, besides the ticks -> writes

Rule 1. Virtual hosts share nothing: each has its own log, gateway, timer and paused sockets.
Rule 2. While too much of the log is unsynced, no socket of the virtual host is read. A sync resumes them.
Rule 3. A failed log ends the server with all its virtual hosts.
"""

import asyncio
import gc
from collections.abc import Callable
from functools import partial
from typing import Any, Final, final

import structlog

from ambermq.engine.config import EngineConfig
from ambermq.engine.effects import Effect, PublishDone
from ambermq.engine.history.offset_times import OffsetTimes
from ambermq.engine.history.timestamps import iso_time
from ambermq.engine.loop.schedule import FOREVER_US, FULL, LATER, NOW, SOON, SYNCED, Due
from ambermq.engine.model.queue import Queue
from ambermq.log.index.background_builder import IndexFault
from ambermq.protocol.auth.access import EVERYTHING, Access
from ambermq.protocol.gateway.gateway import Gateway
from ambermq.protocol.gateway.links.link_peer import LinkPeer
from ambermq.protocol.gateway.links.traffic import Traffic
from ambermq.protocol.gateway.producers.producer_credit import QUEUE_FULL
from ambermq.protocol.http.histogram import SYNC_BOUNDS_US, Histogram
from ambermq.protocol.http.readiness import CHECKED, Readiness, readiness
from ambermq.protocol.resources.disk_watch import DiskWatch
from ambermq.protocol.resources.resource import names_of
from ambermq.protocol.server.vhosts.runner_server import RunnerServer, RunnerSocket
from ambermq.protocol.server.vhosts.services import VhostServices
from ambermq.protocol.server_limits import ServerLimits

__all__ = ["VhostRunner"]

_CHANGES_PER_COLLECTION: Final = 2000
"""The changes after which the young objects are visited: 1 to 4 ms."""


@final
class VhostRunner:
    """One virtual host of a server; the event loop's thread calls everything."""

    __slots__ = (
        "_completed",
        "_index_faults_logged",
        "_is_completion_scheduled",
        "_is_ended",
        "_is_service_due",
        "_is_tick_due",
        "_is_tick_scheduled",
        "_loop",
        "_paused",
        "_server",
        "_snapshot_failures",
        "_timed_end",
        "_timed_ns",
        "_timer",
        "_timer_us",
        "disk",
        "engine",
        "gateway",
        "name",
        "offset_times",
        "schedule",
        "services",
        "step",
        "sync_latency",
    )

    def __init__(
        self,
        server: RunnerServer,
        name: str,
        services: VhostServices,
        *,
        container_id: str,
        access: Access = EVERYTHING,
    ) -> None:
        self.name = name
        self.services = services
        self.engine = services.engine
        self.gateway = Gateway(
            services.engine,
            server.server_limits,
            container_id=container_id,
            queries=services.queries,
            access=access,
            vhost=name,
            vhosts=server.lifecycle,
            users=server.users,
        )
        self._server = server
        self.schedule = services.engine.schedule
        """When the engine wants a step; a transport asks it after each read."""
        self.step = services.engine.step
        """The work of a tick."""
        self._completed = services.engine.completed
        """The work after a sync or a read."""
        self._loop = asyncio.get_running_loop()
        self._index_faults_logged: frozenset[IndexFault] = frozenset()
        self._is_ended = False
        self._is_tick_due = False
        """Whether a tick is wanted since the last one."""
        self._is_tick_scheduled = False
        """Whether the event loop has a call of `_tick_if_due`: at most one, however many ticks run before it."""
        self._is_service_due = False
        self._is_completion_scheduled = False
        """Whether the event loop has a call for the next part of the effects that may leave."""
        self._timer: asyncio.TimerHandle | None = None
        self._timer_us = FOREVER_US
        self._paused: list[RunnerSocket] = []
        self.sync_latency = Histogram(SYNC_BOUNDS_US)
        """The durations of syncs, from their request; one at a time is timed."""
        self._timed_end = self._timed_ns = 0
        """The end of the log that the timed sync makes durable, 0 without one; and when it was requested."""
        self._snapshot_failures: tuple[int, int] = (0, 0)
        """The automatic snapshots that failed, and the number of snapshots at that time."""
        self.offset_times = OffsetTimes()
        """The times at which the newest parts of the log were written."""
        self.offset_times.note(self.engine.log.log_end, self.event_us())
        self.gateway.age_us = self.age_us
        self.gateway.now_s = lambda: self.event_us() // 1_000_000
        self.disk = DiskWatch(services.engine.log, self.gateway, server.server_limits, vhost=name)
        """The watch of the disk."""
        self._add_figures()

    def reconfigure(self, limits: ServerLimits, config: EngineConfig, now_us: int) -> None:
        """Use other limits: of links from their attach on, of the engine from the next tick on."""
        self.gateway.limits = limits
        self.disk.reconfigure(limits)
        self.engine.reconfigure(config, now_us)

    def _add_figures(self) -> None:
        """Add the figures of the clock, of the disk, of damage, and of what holds producers back."""
        engine, gateway, log = self.engine, self.gateway, self.engine.log
        gateway.figures |= self.services.figures
        gateway.figures |= {
            "blocked": lambda: gateway.blocked or None,
            "clock_correction_us": lambda: engine.correction_us,
            "clock_step": self._clock_step_figure,
            "clock_steps": lambda: engine.clock_steps.count,
            "damaged_segments": lambda: [one.reason for one in log.index_faults if one.is_damage],
            "disk_bytes": lambda: log.disk_bytes,
            "disk_is_full": lambda: log.is_full,
            "resources_low": lambda: names_of(gateway.low),
            "room_bytes": log.room_bytes,
            "room_is_low": lambda: self.disk.is_low,
            "room_keeper": lambda: engine.room_keeper or None,
            "room_low_bytes": lambda: log.low_bytes,
            "room_resume_bytes": lambda: self.disk.resume_bytes,
            "segments_without_index": lambda: len(log.index_faults),
            "unsynced_bytes": lambda: log.unsynced_bytes,
        }
        self._add_activity_figures()

    def _add_activity_figures(self) -> None:
        """Add the figures of messages, syncs, snapshots and compactions."""
        engine, gateway, services = self.engine, self.gateway, self.services
        snapshots, log = engine.snapshots, engine.log
        gateway.figures |= {name: partial(getattr, gateway.traffic, name) for name in Traffic.__slots__}
        gateway.figures |= {
            "compaction_is_running": lambda: services.compactions.is_running,
            "compaction_percent": lambda: services.compactions.percent,
            "compaction_stage": lambda: services.compactions.stage or None,
            "compaction_us": lambda: engine.compacted_us or None,
            "compactions_failed": lambda: services.compactions.failed,
            "consumers": lambda: len(gateway.consumers),
            "health": lambda: self.readiness().word,
            "health_reason": lambda: self.readiness().reason or None,
            "outcome_annotations_bytes": lambda: engine.state.outcome_annotations_bytes,
            "outcome_annotations_bytes_max": lambda: engine.config.outcome_annotations_bytes_max,
            "producers": lambda: len(gateway.producers),
            "queues": lambda: len(engine.state.queues),
            "suspended_deliveries": lambda: engine.state.suspended_held,
            "suspended_links": lambda: len(engine.state.suspended),
            "snapshot_bytes_expected": lambda: snapshots.expected_bytes,
            "snapshot_bytes_written": lambda: snapshots.written_bytes,
            "snapshot_failures": self._snapshot_failure_count,
            "snapshot_us": lambda: max((one.created_us for one in log.manifest.snapshots), default=None),
            "snapshots": lambda: len(log.manifest.snapshots),
            "sync_p50_us": lambda: self.sync_latency.quantile_us(0.5),
            "sync_p99_us": lambda: self.sync_latency.quantile_us(0.99),
            "sync_stalled_ms": lambda: self._server.server_limits.sync_stalled_ms,
            "sync_wait_us": self._sync_wait_us,
            "transactions_open": lambda: engine.transactions.count,
            "transactions_open_bytes": lambda: engine.transactions.size,
        }

    def readiness(self) -> Readiness:
        """Return whether the virtual host takes durable messages."""
        figures = self.gateway.figures
        return readiness({name: figures[name]() for name in CHECKED if name in figures})

    def event_us(self) -> int:
        """Return the time of the events that are logged now."""
        return self._server.clock_ns() // 1000 + self._server.epoch_us + self.engine.correction_us

    def age_us(self, queue: Queue) -> int | None:
        """Return the age of the oldest message that waits on a queue; 0 without one, None if it is not known."""
        if not queue.available:
            return 0
        now_us = self.event_us()
        oldest_us = self.offset_times.oldest_us(queue, self.engine.log.manifest.sealed, now_us)
        return None if oldest_us is None else max(now_us - oldest_us, 0)

    def _sync_wait_us(self) -> int:
        return (self._server.clock_ns() - self._timed_ns) // 1000 if self._timed_end else 0

    def _snapshot_failure_count(self) -> int:
        count, snapshots = self._snapshot_failures
        return count if len(self.engine.log.manifest.snapshots) <= snapshots else 0

    def start(self) -> None:
        """Watch the log and the queries, and set the timer for the engine's first deadline."""
        self._loop.add_reader(self.engine.fileno(), self.run, self._completed)
        self._loop.add_reader(self.services.queries.fileno(), self._take_query_results)
        if self.engine.clock_steps.newest is not None:
            self._log_clock_step(self.engine.clock_steps.newest.old_us, self.engine.clock_steps.newest.time_us)
        self._log_format_raised()
        self.run(None)

    def correct_clock(self, correction_us: int, step: tuple[int, int] | None) -> None:
        """Set the difference between the times of events and the time of timers; `step` is old and new time, if any."""
        self.engine.correct_clock(correction_us, step)
        if step is not None:
            self._log_clock_step(*step)
            self.tick_soon()

    def _log_clock_step(self, old_us: int, new_us: int) -> None:
        seconds = round((new_us - old_us) / 1_000_000, 3)
        structlog.get_logger().warning(
            "clock stepped", vhost=self.name, old=iso_time(old_us), new=iso_time(new_us), seconds=seconds
        )

    def _clock_step_figure(self) -> dict[str, Any] | None:
        """Return the newest step of the clock, or None."""
        step = self.engine.clock_steps.newest
        return None if step is None else {"offset": step.offset, "old_us": step.old_us, "new_us": step.time_us}

    def end(self) -> None:
        """Stop: all later calls have no effect."""
        if not self._is_ended:
            self._is_ended = True
            self._loop.remove_reader(self.engine.fileno())
            self._loop.remove_reader(self.services.queries.fileno())
            if self._timer is not None:
                self._timer.cancel()

    @property
    def is_quiet(self) -> bool:
        """Return whether all effects have left and the engine has no work."""
        return not self.schedule.is_due and not self.engine.is_waiting

    def tick_soon(self) -> None:
        """Schedule a tick for the end of this iteration of the event loop."""
        self._is_tick_due = True
        if not self._is_tick_scheduled:
            self._is_tick_scheduled = True
            self._loop.call_soon(self._tick_if_due)

    def after_read(self, due: Due, now_us: int) -> None:
        """Step now, soon or at the deadline, according to the schedule's `due` after a read."""
        if due >= NOW:
            self.run(self.step, now_us)
            if due == FULL:
                # This iteration may read for a long time.
                self.run(self._completed, now_us)
        elif due == SOON:
            self.tick_soon()
        elif due == LATER:
            self.arm(now_us)

    def pause_reading(self, socket: RunnerSocket) -> None:
        """Stop reading a socket until a sync returns."""
        socket.transport.pause_reading()
        self._paused.append(socket)

    def forget_paused(self) -> None:
        """Leave the paused sockets paused."""
        self._paused.clear()

    def _complete_soon(self) -> None:
        """Schedule the next part of the effects that may leave, for the next iteration of the event loop."""
        if not self._is_completion_scheduled:
            self._is_completion_scheduled = True
            self._loop.call_soon(self._complete)

    def _complete(self) -> None:
        self._is_completion_scheduled = False
        self.run(self._completed)

    def serve_sources_soon(self) -> None:
        """Schedule a turn of the browsing links for the next iteration of the event loop."""
        if not self._is_service_due:
            self._is_service_due = True
            self._loop.call_soon(self._serve_sources)

    def sweep(self, now_ms: int, now_us: int) -> None:
        """Poll what raises no event: free disk space, due snapshots, and expired browsing links.

        A spare that ends a congestion is polled too: its event comes at the end of the housekeeping's run, which may
        build indexes for minutes. `now_ms` is of the monotonic clock, `now_us` the time of day.
        """
        self._check_snapshots(now_us)
        self.offset_times.note(self.engine.log.log_end, self.event_us())
        for fault in self.engine.log.take_faults():
            structlog.get_logger().warning("disk space not freed", vhost=self.name, reason=fault)
        self._log_index_faults()
        self._log_format_raised()
        for queue, count in self.engine.take_looped():
            structlog.get_logger().warning("dead letters loop", vhost=self.name, queue=queue, ended=count)
        self.gateway.sources.end_expired(now_ms)
        self.engine.log.bodies.age()
        self._check_room()
        self.run(self._completed, now_us)

    def _log_format_raised(self) -> None:
        """Log that earlier releases cannot open the log from now on."""
        raised = self.engine.format.take_raised()
        if raised is not None:
            types = ",".join(raised.types)
            values = {"types": types, "least_release_before": raised.before, "least_release": raised.after}
            structlog.get_logger().warning("format raised", vhost=self.name, **values)

    def _log_index_faults(self) -> None:
        """Log each segment whose index could not be built, once. Without an index the segment is served by scans."""
        faults = frozenset(self.engine.log.index_faults)
        for fault in sorted(faults - self._index_faults_logged):
            word = "segment damaged" if fault.is_damage else "index not built"
            structlog.get_logger().error(word, vhost=self.name, reason=fault.reason, served="without index")
        self._index_faults_logged = faults

    def _check_room(self) -> None:
        """Hold producers back while the disk has little room or is slow; tell them, and log it once a sweep."""
        gateway = self.gateway
        self.disk.poll(self._server.clock_ns() // 1_000_000)
        if gateway.queue_full_blocks or gateway.queue_full_ends:
            counts = {"links": gateway.queue_full_blocks, "links_over": gateway.queue_full_ends}
            structlog.get_logger().info("queues full", vhost=self.name, reason=QUEUE_FULL, **counts)
            gateway.queue_full_blocks = gateway.queue_full_ends = 0

    def _check_snapshots(self, now_us: int) -> None:
        """Schedule a tick for a due snapshot, and log the failures of automatic ones."""
        snapshots = self.engine.snapshots
        if snapshots.faults:
            count = len(self.engine.log.manifest.snapshots)
            self._snapshot_failures = self._snapshot_failure_count() + len(snapshots.faults), count
        for fault in snapshots.faults:
            structlog.get_logger().warning("snapshot failed", vhost=self.name, reason=fault)
        snapshots.faults.clear()
        if snapshots.is_due(now_us):
            self.tick_soon()

    def _tick_if_due(self) -> None:
        self._is_tick_scheduled = False
        if self._is_tick_due:
            self.run(None if self.schedule.has_urgent and self.schedule.due(0) == SYNCED else self.step)

    def _serve_sources(self) -> None:
        self._is_service_due = False
        if not self._is_ended:
            self.gateway.sources.serve()
            self.run(None)

    def _take_query_results(self) -> None:
        self.gateway.sources.take_answers()
        self.run(None)

    def _resume_reading(self) -> None:
        if not self.engine.log.is_congested:
            paused, self._paused = self._paused, []
            for socket in paused:
                socket.resume_reading()

    def run(self, work: Callable[[int], list[Effect]] | None, now_us: int = 0) -> None:
        """Run `work` of the engine, carry out its effects, flush the output, and set the timer.

        `work` is None if there may only be output. `now_us` is the time, if the caller knows it.
        """
        if self._is_ended:
            return
        server, gateway, schedule = self._server, self.gateway, self.schedule
        sockets, touched = server.sockets, gateway.touched
        now_us = now_us or server.clock_ns() // 1000 + server.epoch_us
        if work is self.step:
            self._is_tick_due = False
        if work is not None:
            try:
                effects = work(now_us)
                if work is self._completed and schedule.has_urgent and schedule.due(now_us) == NOW:
                    # What has gathered during the sync is written before the effects of the sync leave: the next sync
                    # runs meanwhile.
                    effects += self.step(now_us)
            except Exception as failure:  # noqa: BLE001 - a failed log or a bug: no further promise may leave
                server.fail(failure)
                return
            log = self.engine.log
            if self._timed_end:
                if log.durable_end >= self._timed_end:
                    # As Histogram.observe: a call for each sync would cost more than the rest.
                    timed_us, index, latency = (server.clock_ns() - self._timed_ns) // 1000, 0, self.sync_latency
                    for bound_us in latency.bounds_us:
                        if timed_us <= bound_us:
                            break
                        index += 1
                    latency.counts[index] += 1
                    latency.sum_us += timed_us
                    self._timed_end = 0
            elif log.requested_end > log.durable_end:
                self._timed_end, self._timed_ns = log.requested_end, server.clock_ns()
            if len(effects) > 1 and type(effects[0]) is PublishDone:
                # A sender has its settlement before deliveries are built: it works on meanwhile.
                if len(effects) > 2:
                    settled: list[Effect] = [one for one in effects if type(one) is PublishDone]
                    effects = [one for one in effects if type(one) is not PublishDone]
                else:
                    settled, effects = effects[:1], effects[1:]
                gateway.carry_out(settled)
                while touched:
                    socket = sockets.get(touched.popitem()[0])
                    if socket is not None:
                        socket.flush()
            if effects:
                gateway.carry_out(effects)
        if gateway.lost_links.links:
            gateway.lost_links.detach()
            self.tick_soon()
        if gateway.access_checks.peers:
            gateway.access_checks.advance()
            self.tick_soon()
        if gateway.mistakes:
            self._log_mistakes()
        while touched:
            socket = sockets.get(touched.popitem()[0])
            if socket is not None:
                socket.flush()
        if work is self._completed:
            if self.engine.log.is_low and not self.disk.is_low:
                self._check_room()
            if self._paused:
                self._resume_reading()
            if gateway.sources.is_waiting:
                gateway.sources.wake_waiters()
        if gateway.sources.ready:
            self.serve_sources_soon()
        if self.engine.change_count >= _CHANGES_PER_COLLECTION:
            # A change replaces as many objects as it makes. So the interpreter, which counts their number, does not see
            # that they are young, and a later collection visits them all at once: 20 ms after 60,000 changes.
            self.engine.change_count = 0
            gc.collect(1)
        if work is not None and self.engine.is_late:
            self._complete_soon()
        if (schedule.has_urgent or schedule.dirty) and schedule.due(now_us) != SYNCED:
            self.tick_soon()
        if schedule.next_us < self._timer_us:
            self.arm(now_us)

    def _log_mistakes(self) -> None:
        for peer, mistake in self.gateway.mistakes:
            values = {"vhost": self.name, "error": repr(mistake), "exc_info": mistake}
            self._server.peer_log.error("command failed", self._address_of(peer), **values)
        self.gateway.mistakes.clear()

    def _address_of(self, peer: LinkPeer | None) -> str:
        """Return the address of a connection; empty if its socket is gone."""
        socket = None if peer is None else self._server.sockets.get(peer)
        return "" if socket is None else socket.address

    def arm(self, now_us: int) -> None:
        """Set the timer for the next deadline, unless it fires before."""
        if self.schedule.next_us >= self._timer_us:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer_us = self.schedule.next_us
        # Event loops count whole milliseconds: for a fraction of one the timer would fire again and again.
        delay_ms = -(-max(self._timer_us - now_us, 0) // 1000)
        self._timer = self._loop.call_later(delay_ms / 1000, self._timer_fired)

    def _timer_fired(self) -> None:
        self._timer, self._timer_us = None, FOREVER_US
        now_us, schedule = self._server.clock_ns() // 1000 + self._server.epoch_us, self.schedule
        if schedule.next_us <= now_us:
            is_step = min(schedule.write_by_us, schedule.timer_us) <= now_us
            self.run(self.step if is_step else self.engine.sync_or_mark, now_us)
        elif schedule.next_us < FOREVER_US:
            # A tick has done the work of the deadline that the timer was set for.
            self.arm(now_us)
