"""Queues with `expires_ms`: they end when nothing has used them for so long."""

import random
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ambermq.engine.commands import (
    AttachMember,
    DeclareMuxer,
    DeclareQueue,
    DeleteQueue,
    DetachConsumer,
    DetachProducer,
    Inspect,
    MoveMessages,
    NoteBrowser,
    ResetHost,
    UpdateQueue,
)
from ambermq.engine.config import EngineConfig
from ambermq.engine.loop.schedule import FOREVER_US
from ambermq.engine.model.muxer import MuxerKind
from ambermq.engine.settings.queue_settings import Settings
from tests.engine.decide.messages.test_dead_letters import again, declare
from tests.engine.decide.messages.test_expiry import wait
from tests.engine.rig import Rig

SECOND = 1_000_000
EXPIRES = Settings(expires_ms=1000)


def is_there(rig: Rig, name: str = "q") -> bool:
    """Return whether a queue exists."""
    return rig.loop.state.queue_named(name) is not None


def expiring(**values: object) -> Rig:
    """Return a broker with a queue that ends after a second without use."""
    rig = Rig()
    declare(rig, "q", expires_ms=1000, **values)
    return rig


def test_a_queue_that_nothing_uses_ends() -> None:
    """By the time since its declaration, with an event."""
    rig = expiring()
    wait(rig, SECOND - 1)
    assert is_there(rig)
    wait(rig, 1)
    assert not is_there(rig)
    assert rig.loop.schedule.timer_us == FOREVER_US
    again(rig)


def muxer_producer(rig: Rig, name: str = "q") -> int:
    """Return a producer that sends to a muxer: it is no link of the queue."""
    rig.do(DeclareMuxer("key", f"to-{name}", MuxerKind.SIMPLE), AttachMember("key", f"to-{name}", f"/queues/{name}"))
    return rig.producer(f"/muxers/to-{name}")


def published(rig: Rig, name: str = "q") -> None:
    """Publish through a muxer."""
    producer = muxer_producer(rig, name)
    rig.do(rig.publish(producer, b"a"))
    rig.do(DetachProducer(producer))


def moved(rig: Rig) -> None:
    """Move a message to it."""
    declare(rig, "other")
    rig.do(rig.publish(rig.producer("other"), b"a"))
    (word,) = rig.queue("other").ready
    rig.do(MoveMessages("key", "other", (word >> 16,), "q"))
    assert rig.queue().depth == 1


USES: dict[str, Callable[[Rig], object]] = {
    "publish": published,
    "move": moved,
    "read": lambda rig: rig.do(Inspect("key", lambda _state: None, "q")),
    "declaration": lambda rig: rig.do(DeclareQueue("key", "/queues/q", EXPIRES)),
    "update": lambda rig: rig.do(UpdateQueue("key", "q", lambda _state: {}, {"paused": True})),
    "consumer": lambda rig: rig.do(DetachConsumer(rig.consumer())),
    "producer": lambda rig: rig.do(DetachProducer(rig.producer())),
    "browser": lambda rig: rig.do(NoteBrowser(rig.queue().id, 1)) + rig.do(NoteBrowser(rig.queue().id, -1)),
}


@pytest.mark.parametrize("use", USES)
def test_a_use_begins_the_time_again(use: str) -> None:
    """Whatever it is; then the queue ends, messages and all."""
    rig = expiring()
    wait(rig, SECOND - 1)
    USES[use](rig)
    wait(rig, SECOND - 1)
    assert is_there(rig)
    wait(rig, 1)
    assert not is_there(rig)
    again(rig)


@pytest.mark.parametrize("use", ["read", "listing"])
def test_what_is_no_use(use: str) -> None:
    """The read of another queue, and a listing."""
    rig = expiring()
    wait(rig, SECOND - 1)
    rig.do(Inspect("key", lambda _state: None, "other" if use == "read" else ""))
    wait(rig, 1)
    assert not is_there(rig)


def test_a_link_keeps_it() -> None:
    """For as long as it lasts; its end begins the time."""
    rig = expiring()
    consumer, producer, browser = rig.consumer(), rig.producer(), rig.queue().id
    rig.do(NoteBrowser(browser, 1), NoteBrowser(browser, 1))
    for end in (DetachConsumer(consumer), DetachProducer(producer), NoteBrowser(browser, -1), NoteBrowser(browser, -1)):
        wait(rig, 10 * SECOND)
        assert is_there(rig)
        assert rig.loop.schedule.timer_us == FOREVER_US
        rig.do(end)
    wait(rig, SECOND - 1)
    assert is_there(rig)
    wait(rig, 1)
    assert not is_there(rig)


def test_a_use_before_the_decision_saves_it() -> None:
    """A publish that is accepted is not deleted by a timer of before."""
    rig = expiring()
    producer = muxer_producer(rig)
    rig.now_us += SECOND
    rig.step()
    assert is_there(rig)
    rig.loop.submit(rig.publish(producer, b"a"))
    queued = rig.loop._command_queue._commands
    queued.reverse()
    rig.do()
    assert rig.queue().depth == 1
    wait(rig, SECOND - 1)
    assert is_there(rig)
    wait(rig, SECOND)
    assert not is_there(rig)


def test_a_start_begins_the_time_again() -> None:
    """The time before it does not count; what was a link is none any more."""
    rig = expiring()
    rig.consumer()
    rig.now_us += SECOND // 2
    rig = again(rig)
    wait(rig, SECOND - 1)
    assert is_there(rig)
    wait(rig, 1)
    assert not is_there(rig)


def test_a_step_of_the_clock_ends_nothing() -> None:
    """The time is elapsed time."""
    rig = expiring()
    rig.loop.correct_clock(100 * SECOND, step=(rig.now_us, rig.now_us + 100 * SECOND))
    wait(rig, SECOND - 1)
    assert is_there(rig)
    wait(rig, 1)
    assert not is_there(rig)


def test_the_setting_changes() -> None:
    """Off, on and longer: the update counts as a use."""
    rig = expiring()
    rig.do(UpdateQueue("key", "q", lambda _state: {}, {"expires_ms": 0}))
    wait(rig, 10 * SECOND)
    assert is_there(rig)
    rig.do(UpdateQueue("key", "q", lambda _state: {}, {"expires_ms": 2000}))
    wait(rig, 2 * SECOND - 1)
    assert is_there(rig)
    wait(rig, 1)
    assert not is_there(rig)


def test_a_deleted_queue_leaves_nothing() -> None:
    """Neither a timer nor a use of a later queue of its name; a reset forgets all."""
    rig = expiring()
    for _ in range(3000):
        rig.do(DeleteQueue("key", "q"))
        declare(rig, "q", expires_ms=1000)
    assert len(rig.loop._unused._timers) < 1100
    rig.do(ResetHost("key"))
    assert rig.loop._unused.next_us == FOREVER_US
    assert not rig.loop._unused.used_us


def test_many_queues_end_in_bounded_ticks() -> None:
    """A tick looks at a limited number of them."""
    rig = Rig(config=EngineConfig(tick_changes_max=20))
    for number in range(100):
        declare(rig, f"q{number}", expires_ms=1000)
    rig.now_us += SECOND
    before = len(rig.loop.state.queues)
    while rig.loop.state.queues:
        rig.step()
        rig.completed()
        left = len(rig.loop.state.queues)
        assert before - left <= 20
        before = left


class Model:
    """What the queues should be, by all uses."""

    def __init__(self) -> None:
        self.used_us: dict[str, int] = {}
        self.links: dict[str, int] = {}


@given(st.integers(0, 2**32))
@settings(max_examples=60, deadline=None)
def test_a_queue_is_there_as_long_as_a_model_says(seed: int) -> None:
    """Random uses, links, times and starts: it ends at its time, neither before nor later."""
    draw, rig, model = random.Random(seed), Rig(), Model()
    ends: list[tuple[str, object]] = []
    for _ in range(40):
        name = draw.choice(["a", "b"])
        if not is_there(rig, name):
            model.used_us[name], model.links[name] = rig.now_us, 0
            ends = [one for one in ends if one[0] != name]
            declare(rig, name, expires_ms=100)
        match draw.randrange(7):
            case 0:
                ends.append((name, DetachConsumer(rig.consumer(name))))
                model.links[name] += 1
            case 1:
                ends.append((name, DetachProducer(rig.producer(name))))
                model.links[name] += 1
            case 2:
                queue = rig.queue(name).id
                rig.do(NoteBrowser(queue, 1))
                ends.append((name, NoteBrowser(queue, -1)))
                model.links[name] += 1
            case 3 if ends:
                name, end = ends.pop(draw.randrange(len(ends)))
                rig.do(end)  # type: ignore[arg-type]
                model.links[name] -= 1
            case 4:
                rig.do(Inspect("key", lambda _state: None, name))
            case 5 if draw.random() < 0.3:
                rig = again(rig)
                ends, model.links = [], dict.fromkeys(model.links, 0)
                model.used_us = {one: rig.now_us for one in model.used_us if is_there(rig, one)}
            case _:
                published(rig, name)
        model.used_us[name] = rig.now_us
        wait(rig, draw.choice([0, 50_000, 99_999, 100_000, 150_000]))
        for one, used_us in model.used_us.items():
            assert is_there(rig, one) == bool(model.links[one] or rig.now_us - used_us < 100_000)


def test_a_scheduled_message_keeps_it() -> None:
    """Until its time has come, and a while without use from then on."""
    rig = expiring()
    message = rig.publish(muxer_producer(rig), b"later")
    message.delay_ms = 10_000
    rig.do(message)
    for _ in range(19):
        wait(rig, SECOND // 2)
        assert is_there(rig)
    wait(rig, SECOND)
    assert rig.queue().available == 1
    wait(rig, 2 * SECOND)
    assert not is_there(rig)
