"""What a tick takes of what is due, and of messages that each are a run of their own."""

from typing import Any

import pytest

from ambermq.engine.commands import BeginTransaction, Publish, Transaction
from ambermq.engine.config import EngineConfig
from ambermq.engine.entries.outcome import ACCEPTED
from tests.engine.decide.messages.test_dead_letters import declare
from tests.engine.rig import Rig, held

SECOND = 1_000_000


def steps_until(rig: Rig, depth: int) -> list[int]:
    """Step until `q` has so many messages; returns its length after each step."""
    seen = [rig.queue().available]
    while seen[-1] != depth:
        assert rig.loop.schedule.timer_us <= rig.now_us
        rig.step()
        rig.completed()
        seen.append(rig.queue().available)
    return seen[1:]


def test_very_many_late_transactions_take_several_ticks() -> None:
    """Each may return thousands of deliveries."""
    rig = Rig(config=EngineConfig(transaction_ms_max=10, tick_changes_max=4))
    consumer, words = held(rig, 6)
    for number in range(3):
        one = Transaction(bytes([number]))
        for word in words[2 * number : 2 * number + 2]:
            one.retire(consumer, word, ACCEPTED, is_settled=True)
        rig.do(BeginTransaction(one))
    rig.now_us += 10_000
    assert steps_until(rig, 6) == [4, 6]


@pytest.mark.parametrize("fields", [{"priority": 1}, {"delay_ms": 10_000}])
def test_runs_with_marks_take_more_of_a_tick(fields: dict[str, Any]) -> None:
    """Where each message has another priority or time, it is a run with two events."""
    rig = Rig(config=EngineConfig(tick_changes_max=12))
    producer = rig.producer()
    for number in range(6):
        mark = {name: value + number for name, value in fields.items()}
        rig.loop.submit(Publish("link", producer, number, [b"m"], [0], 1, **mark))
    rig.step()
    assert rig.queue().depth == 2


def test_messages_that_are_due_take_several_ticks() -> None:
    """They are put into their places, which takes longer than a delivery."""
    rig = Rig(config=EngineConfig(dispatch_messages_max=16))
    declare(rig, "q")
    rig.do(Publish("link", rig.producer(), 0, [b"m"] * 10, [0] * 10, 10, delay_ms=1000))
    rig.now_us += 2 * SECOND
    assert steps_until(rig, 10) == [4, 8, 10]
