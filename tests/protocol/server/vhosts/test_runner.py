"""A virtual host in its event loop: it does what its engine needs, without any client."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any
from unittest import mock

from ambermq.engine.commands import Inspect, Settle
from ambermq.engine.config import EngineConfig
from ambermq.engine.effects import PublishDone
from ambermq.engine.entries.entry_word import pack_words
from ambermq.engine.entries.outcome import ACCEPTED
from ambermq.engine.history.background_queries import BackgroundQueries
from ambermq.engine.loop.schedule import FOREVER_US, NOW, SOON, SYNCED
from ambermq.log.storage.worker_threads import InlineWorkers
from ambermq.protocol.server.limited_log import LimitedLog
from ambermq.protocol.server.vhosts.runner import VhostRunner
from ambermq.protocol.server.vhosts.services import VhostServices
from ambermq.protocol.server_limits import ServerLimits
from tests.engine.rig import COLD, Rig, held
from tests.log.lives import DIRECTORY

_HANGS_S = 60


def host_of(rig: Rig) -> VhostRunner:
    """A host of an engine by whose clock it goes."""
    clock: Any = {"clock_ns": lambda: rig.now_us * 1000, "epoch_us": 0}
    server: Any = SimpleNamespace(
        server_limits=ServerLimits(), lifecycle=None, users=None, peer_log=LimitedLog(lambda: 0), sockets={}, **clock
    )
    beside = BackgroundQueries(InlineWorkers(), DIRECTORY, rig.loop.log.config, past_jobs_max=1, past_waiting_max=1)
    ground = VhostServices(rig.loop, beside)
    return VhostRunner(server, "default", ground, container_id="broker")


def test_the_deadline_that_the_start_has_left_is_kept() -> None:
    """Without clients and without news of threads the log carries its durable end, for readers beside it."""
    rig = Rig()
    assert not rig.loop.log.is_marked

    async def serve() -> None:
        host = host_of(rig)
        rig.now_us = rig.loop.schedule.next_us
        host.start()
        async with asyncio.timeout(_HANGS_S):
            while not rig.loop.log.is_marked:  # noqa: ASYNC110 - no event tells of a mark
                await asyncio.sleep(0.001)
        host.end()

    asyncio.run(serve())


class _Timers:
    """An event loop that only notes what it is asked to call: later, in seconds, and soon."""

    def __init__(self) -> None:
        self.delays: list[float] = []
        self.soon: list[Callable[[], None]] = []
        self.cancelled_count = 0

    def call_soon(self, callback: Callable[[], None]) -> None:
        self.soon.append(callback)

    def iterate(self) -> None:
        """Call what was asked for before this iteration."""
        calls, self.soon = self.soon, []
        for call in calls:
            call()

    def call_later(self, delay: float, _callback: Callable[[], None]) -> "_Timers":
        self.delays.append(delay)
        return self

    def cancel(self) -> None:
        self.cancelled_count += 1


def timed(rig: Rig) -> tuple[VhostRunner, _Timers]:
    """A host whose timers never fire by themselves."""
    timers = _Timers()

    async def make() -> VhostRunner:
        return host_of(rig)

    host = asyncio.run(make())
    host._loop = timers  # type: ignore[assignment]
    return host, timers


def test_a_timer_that_fires_early_sleeps_a_millisecond_more() -> None:
    """Event loops round to milliseconds: for the rest of one, the timer would fire again and again."""
    rig = Rig()
    host, timers = timed(rig)
    rig.now_us = rig.loop.schedule.next_us - 300
    host._timer_fired()
    assert timers.delays == [0.001]


def test_one_timer_is_kept_for_the_earliest_deadline() -> None:
    """A settlement sets it earlier; the message that is written meanwhile does not set it later."""
    rig = Rig()
    consumer, words = held(rig, 1)
    producer = rig.producer()
    host, timers = timed(rig)
    host.run(None, rig.now_us)
    assert timers.delays == [1.0], "for the mark"
    rig.loop.submit(Settle(consumer, pack_words(words), ACCEPTED))
    host.after_read(rig.due, rig.now_us)
    assert timers.delays == [1.0, 0.008]
    assert timers.cancelled_count == 1
    rig.loop.submit(rig.publish(producer, b"alone"))
    host.after_read(rig.due, rig.now_us)
    host.run(host._completed, rig.now_us)
    assert timers.delays == [1.0, 0.008]


def test_a_timer_whose_work_was_done_is_set_for_the_next_deadline() -> None:
    """And asks for a sync without a tick, where that alone is due."""
    rig = Rig()
    consumer, words = held(rig, 1)
    host, timers = timed(rig)
    rig.loop.submit(Settle(consumer, pack_words(words), ACCEPTED))
    host.after_read(rig.due, rig.now_us)
    rig.now_us += 8000
    host._timer_fired()
    log = rig.loop.log
    assert log.requested_end < log.log_end == log.draft.next_offset
    assert timers.delays[-1] == 0.02
    rig.now_us += 5000
    host._timer_fired()
    assert timers.delays[-1] == 0.015
    rig.now_us += 15_000
    host._timer_fired()
    assert log.requested_end == log.log_end
    assert rig.loop.schedule.next_us == FOREVER_US


def test_a_sweep_resumes_the_sockets_when_a_spare_is_ready() -> None:
    """The housekeeping thread reports the spare only at the end of its run, which may build indexes for long."""
    size = 1 << 16
    limits = {"segment_bytes_min": size, "segment_bytes_max": size, "unsynced_bytes_max": 1 << 40}
    rig = Rig(log_config=replace(COLD, **limits))
    producer = rig.producer()
    host, _ = timed(rig)
    log = rig.loop.log
    while not log.is_outgrown:
        rig.step(rig.publish(producer, bytes(3000)))
    rig.completed()
    assert log.is_congested
    socket: Any = mock.Mock()
    host.pause_reading(socket)
    log._workers.collect()
    assert not log.is_outgrown
    host.sweep(0, rig.now_us)
    socket.resume_reading.assert_called_once_with()


def test_at_most_one_tick_is_scheduled() -> None:
    """Every output and every answer asks for one; they have the same tick."""
    rig = Rig()
    host, timers = timed(rig)
    for _ in range(3):
        host.tick_soon()
    assert len(timers.soon) == 1
    host.run(host.step, rig.now_us)
    host.tick_soon()
    assert len(timers.soon) == 1, "a tick in between does not take back the call"
    timers.iterate()
    assert not timers.soon


def test_reads_add_no_steps_to_a_backlog_in_dispatch() -> None:
    """While the engine stays due, an iteration of the event loop has one step, however many peers send meanwhile."""
    rig = Rig(config=EngineConfig(dispatch_messages_max=1))
    producer, side = rig.producer(), rig.producer("side")
    rig.do(rig.publish(producer, *[b"%d" % number for number in range(100)]))
    rig.consumer(credit=1000)
    host, timers = timed(rig)
    host.gateway.carry_out = lambda effects: None  # type: ignore[method-assign]
    steps = mock.Mock(side_effect=rig.loop.step)
    host.step = steps
    host.run(host.step, rig.now_us)
    for _ in range(20):
        steps.reset_mock()
        timers.iterate()
        for _ in range(3):
            rig.loop.submit(rig.publish(side, b"alone"))
            host.after_read(rig.due, rig.now_us)
            host.run(host._completed, rig.now_us)
        assert (steps.call_count, len(timers.soon)) == (1, 1)


def test_few_durable_messages_gather_until_the_sync_in_progress_ends() -> None:
    """Nothing that they cause could leave before. Then one step writes them, and requests their sync."""
    rig = Rig()
    producer = rig.producer()
    host, timers = timed(rig)
    carried: list[Any] = []
    host.gateway.carry_out = carried.extend  # type: ignore[method-assign]
    log = rig.loop.log
    rig.loop.submit(rig.publish(producer, b"first"))
    assert rig.due == NOW
    host.after_read(rig.due, rig.now_us)
    written = log.log_end
    for _ in range(3):
        rig.loop.submit(rig.publish(producer, b"gathered"))
        assert rig.due == SYNCED
        host.after_read(rig.due, rig.now_us)
        host.run(None, rig.now_us)
    assert not timers.soon
    assert (log.log_end, carried) == (written, [])
    host.run(host._completed, rig.now_us)
    assert [type(one) for one in carried] == [PublishDone]
    assert log.log_end == log.requested_end == written + 3
    host.run(host._completed, rig.now_us)
    assert sum(one.count for one in carried) == 4


def test_what_needs_no_sync_or_is_much_does_not_gather() -> None:
    """A message that is not durable, a question and many bytes have their step at the end of the iteration."""
    for command in ("volatile", "question", "many"):
        rig = Rig()
        producer = rig.producer()
        host, timers = timed(rig)
        rig.step(rig.publish(producer, b"first"))
        rig.loop.submit(rig.publish(producer, b"gathered"))
        assert rig.due == SYNCED
        if command == "volatile":
            rig.loop.submit(rig.publish(producer, b"lost", durable=False))
        elif command == "question":
            rig.loop.submit(Inspect("key", lambda _: None))
        else:
            rig.loop.submit(rig.publish(producer, *[bytes(4000)] * 9))
        assert rig.due == SOON
        host.after_read(rig.due, rig.now_us)
        assert len(timers.soon) == 1


def test_a_settlement_leaves_before_deliveries_are_built() -> None:
    """Its sender can go on meanwhile; the order on each link stays."""
    rig = Rig()
    producer = rig.producer()
    rig.consumer(credit=100)
    host, _ = timed(rig)
    carried: list[list[str]] = []
    host.gateway.carry_out = lambda effects: carried.append([type(one).__name__ for one in effects])  # type: ignore[method-assign]
    rig.step(rig.publish(producer, b"1"))
    host.run(host._completed, rig.now_us)
    assert carried == [["PublishDone"], ["Deliver"]]
    carried.clear()
    rig.step(rig.publish(producer, b"2"))
    rig.step(rig.publish(producer, b"3"))
    host.run(host._completed, rig.now_us)
    assert carried == [["PublishDone", "PublishDone"], ["Deliver", "Deliver"]]
