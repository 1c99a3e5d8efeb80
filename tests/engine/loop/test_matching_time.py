"""Ticks that route messages by their fields: each takes a limited time, and the result is the same."""

from collections.abc import Callable
from itertools import count, product
from typing import Any

import pytest

from ambermq.engine.commands import AttachMember, DeclareMuxer, DeclareQueue, ExplainRoute
from ambermq.engine.config import EngineConfig
from ambermq.engine.effects import Answered, Effect, PublishDone
from ambermq.engine.entries.outcome import OutcomeKind
from ambermq.engine.errors import EngineError
from ambermq.engine.model.attachment import Argument
from ambermq.engine.model.muxer import MuxerKind
from ambermq.engine.settings.queue_settings import Settings
from ambermq.engine.time_budget import standing_clock
from tests.engine.dispatch.test_selector_scan import fields_of
from tests.engine.rig import Rig


def rig_of(kind: MuxerKind, arguments: list[Argument], clock: Callable[[], int] = standing_clock, **limits: int) -> Rig:
    """Return a rig with a muxer, whose first and last attachment are for the queue `q`."""
    rig = Rig(config=EngineConfig(matching_us_max=10, **limits), fields_of=fields_of, clock_ns=clock)
    rig.do(DeclareMuxer("key", "m", kind), DeclareQueue("key", "q", Settings()), DeclareQueue("key", "r", Settings()))
    for number, argument in enumerate(arguments):
        name = "q" if number in {0, len(arguments) - 1} else "r"
        (answer,) = rig.do(AttachMember("key", "m", name, argument))
        assert type(answer) is Answered
    return rig


def slow_clock() -> Callable[[], int]:
    """Return a clock on which each look at it takes 4 us."""
    return count(0, 4000).__next__


def ticks_of(rig: Rig, *commands: Any) -> tuple[int, list[Effect]]:
    """Return how many ticks the commands take, and their effects."""
    effects = rig.step(*commands) + rig.completed()
    ticks = 1
    while rig.loop.is_waiting or rig.loop.schedule.is_due:
        effects += rig.step() + rig.completed()
        ticks += 1
        assert ticks < 1000
    return ticks, effects


KINDS = [
    (MuxerKind.SELECTOR, [f"kind LIKE 'a' AND {number} = {number}" for number in range(40)]),
    (MuxerKind.WILD_DESTINATION, [".".join(words) for words in product("*#", repeat=7)]),
]


@pytest.mark.parametrize(("kind", "arguments"), KINDS, ids=["selector", "pattern"])
def test_a_long_route_takes_several_ticks(kind: MuxerKind, arguments: list[Argument]) -> None:
    """Messages wait for the ticks, in their order, with those of other producers; all reach the same queues."""
    results = []
    for clock in (standing_clock, slow_clock()):
        rig = rig_of(kind, arguments, clock)
        address = "/muxers/m/x" if kind is MuxerKind.SELECTOR else "/muxers/m/a.b.c.d.e.f.g.h"
        first, second = rig.producer(address), rig.producer("q")
        runs = [rig.publish(first, b"a1", b"b2", b"a3"), rig.publish(second, b"c4"), rig.publish(first, b"a5")]
        ticks, effects = ticks_of(rig, *runs)
        done = [(each.count, each.kind) for each in effects if type(each) is PublishDone]
        assert sum(number for number, _ in done) == 5
        words = {}
        for name in ("q", "r"):
            words[name] = list(rig.queue(name).ready)
        # An outcome without a promise may overtake the others.
        results.append((words, sorted(outcome for number, outcome in done for _ in range(number))))
        assert (ticks > 3) is (clock is not standing_clock)
    assert results[0] == results[1]


def test_a_route_is_explained_in_several_ticks() -> None:
    """The answer is the same, and comes once."""
    answers = []
    for clock in (standing_clock, slow_clock()):
        rig = rig_of(*KINDS[0], clock)
        ask = ExplainRoute("key", "/muxers/m/x", b"a", lambda _state, explained: len(explained.hops[0].attachments))
        ticks, effects = ticks_of(rig, ask)
        answers.append([each.value for each in effects if type(each) is Answered])
        assert (ticks > 3) is (clock is not standing_clock)
    assert answers == [[40], [40]]


def test_a_message_for_too_many_selectors_is_rejected() -> None:
    """The limit is named, and other messages of the run are not affected by it."""
    rig = rig_of(*KINDS[0], selectors_per_message_max=39)
    effects = rig.do(rig.publish(rig.producer("/muxers/m/x"), b"a", b"b"))
    (done,) = [each for each in effects if type(each) is PublishDone]
    assert (done.count, done.kind, done.condition) == (2, OutcomeKind.REJECTED, "amqp:resource-limit-exceeded")
    assert "selectors_per_message_max" in done.description
    assert not rig.queue().ready


@pytest.mark.parametrize("name", ["matching_us_max", "selectors_per_message_max"])
def test_no_limit_is_zero(name: str) -> None:
    """A tick without time for matching, or a message for no selector, would stop a broker."""
    with pytest.raises(EngineError, match=name):
        EngineConfig(**{name: 0})
