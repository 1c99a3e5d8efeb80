"""When a tick waits for company."""

from itertools import pairwise

from engine.commands import Publish
from engine.config import EngineConfig
from engine.patience import Patience
from tests.engine.rig import Rig

CONFIG = EngineConfig(gather_us=3000, gather_messages_max=16, gather_bytes_max=1000)


def test_the_first_tick_after_a_pause_does_not_wait() -> None:
    """Nobody waits for company that is not likely to come."""
    patience = Patience(CONFIG)
    assert patience.until_us(10_000, count=1, size=10) == 0
    patience.ended(10_000, pipelined=0)
    assert patience.until_us(13_000, count=1, size=10) == 0


def test_single_messages_wait_until_the_interval_is_over() -> None:
    """A tick soon after the last one ends gather_us after that one, however often it is asked."""
    patience = Patience(CONFIG)
    patience.ended(10_000, pipelined=0)
    assert patience.until_us(11_000, count=1, size=10) == 13_000
    assert patience.until_us(12_000, count=2, size=20) == 13_000


def test_many_messages_and_large_ones_never_wait() -> None:
    """What fills a write by itself is written at once."""
    patience = Patience(CONFIG)
    patience.ended(10_000, pipelined=0)
    assert patience.until_us(11_000, count=17, size=10) == 0
    assert patience.until_us(11_000, count=1, size=1001) == 0


def test_a_wait_without_gain_is_not_tried_again_soon() -> None:
    """Senders that wait for each answer are made to wait at most once in 64 ticks."""
    patience = Patience(CONFIG)
    waits = []
    now_us = 10_000
    patience.ended(now_us, pipelined=0)
    for tick in range(400):
        now_us += 500
        if patience.until_us(now_us, count=1, size=10):
            waits.append(tick)
            now_us += 2500
        patience.ended(now_us, pipelined=0)
    assert [after - before for before, after in pairwise(waits)] == [2, 4, 8, 16, 32, 64, 64, 64, 64, 64]


def test_a_sender_that_goes_on_sending_is_waited_for_again() -> None:
    """As long as waiting brings messages of senders that do not wait for answers, every tick waits."""
    patience = Patience(CONFIG)
    now_us = 10_000
    patience.ended(now_us, pipelined=0)
    for _ in range(50):
        now_us += 1000
        assert patience.until_us(now_us, count=1, size=10) == now_us + 2000
        now_us += 2000
        patience.ended(now_us, pipelined=2)


def test_no_interval_is_no_waiting() -> None:
    """gather_us 0 switches it off."""
    patience = Patience(EngineConfig(gather_us=0))
    patience.ended(10_000, pipelined=0)
    assert patience.until_us(10_000, count=1, size=10) == 0


def test_it_says_whether_senders_go_on() -> None:
    """Only while the last tick had messages of senders that do not wait is it worth letting sockets wait."""
    patience = Patience(CONFIG)
    assert not patience.has_paid
    patience.ended(10_000, pipelined=2)
    assert patience.has_paid
    patience.ended(13_000, pipelined=0)
    assert not patience.has_paid


def test_a_log_ahead_of_the_clock_makes_nobody_wait_longer() -> None:
    """Events are stamped by the log's time, waits are counted by the clock."""
    rig = Rig()
    producer = rig.producer()
    rig.now_us = 3_600_000_000
    rig.do(Publish("link", producer, 0, [b"1"], [0], 1))
    rig.now_us = 1_000_000
    rig.do(Publish("link", producer, 1, [b"2"], [0], 1))
    assert rig.loop.state.time_us == 3_600_000_000
    rig.loop.submit(Publish("link", producer, 2, [b"3"], [0], 1))
    assert rig.loop.tick_by_us(1_001_000) - 1_001_000 <= rig.loop.config.gather_us
