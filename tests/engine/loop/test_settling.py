"""Settlements that no effect waits for coalesce while messages come, and delay no other command."""

from ambermq.engine.commands import (
    AttachConsumer,
    AttachMember,
    DeclareMuxer,
    DeclareQueue,
    DetachProducer,
    Inspect,
    Settle,
)
from ambermq.engine.config import EngineConfig
from ambermq.engine.effects import Answered, ConsumerReady
from ambermq.engine.entries.entry_word import pack_words
from ambermq.engine.entries.outcome import ACCEPTED, RELEASED
from ambermq.engine.events.registry import TYPE_NAMES
from ambermq.engine.loop.schedule import FULL, LATER, NOW, SOON
from ambermq.engine.model.lifetime import Dynamic, Lifetime
from ambermq.engine.model.muxer import MuxerKind
from ambermq.engine.settings.queue_settings import Settings
from ambermq.log.config import LogConfig
from tests.engine.rig import Rig, held

TYPES = {name: number for number, name in TYPE_NAMES.items()}


def accept(rig: Rig, consumer: int, words: list[int]) -> None:
    """Submit a settlement as a server does that has nothing else to do."""
    rig.loop.submit(Settle(consumer, pack_words(words), ACCEPTED))
    assert rig.due >= LATER


def settled_count(rig: Rig) -> int:
    """How many records of settlements were written so far."""
    return sum(batch.count(TYPES["settled"]) for batch in rig.batches())


def test_while_messages_come_settlements_are_one_record_each_lazy_write_ms() -> None:
    """Twenty in twenty milliseconds, between as many messages, are three records, and none is late."""
    rig = Rig()
    consumer, words = held(rig, 20)
    producer = rig.producer()
    rig.loop.set_credit(consumer, 0)
    for number, word in enumerate(words):
        rig.now_us += 500
        accept(rig, consumer, [word])
        rig.now_us += 500
        rig.step(rig.publish(producer, b"%d" % number))
        rig.completed()
    assert len(rig.queue().held_by(consumer)) <= rig.loop.config.lazy_write_ms
    rig.now_us = rig.loop.schedule.next_us
    rig.step()
    assert not rig.queue().held_by(consumer)
    assert settled_count(rig) == 3


def test_consumers_that_take_turns_are_a_record_each() -> None:
    """A run joins the earlier run of the same consumer, even if another consumer settled in between."""
    rig = Rig()
    one, ones = held(rig, 6)
    rig.loop.set_credit(one, 0)
    other, others = held(rig, 6)
    rig.loop.set_credit(other, 0)
    for mine, yours in zip(ones, others, strict=True):
        accept(rig, one, [mine])
        accept(rig, other, [yours])
    rig.now_us = rig.loop.schedule.next_us
    rig.step()
    assert rig.queue().depth == 0
    assert settled_count(rig) == 2


def test_what_cannot_wait_is_decided_behind_them() -> None:
    """A release, or a question about the queue, is decided after the settlements before it."""
    rig = Rig()
    consumer, words = held(rig, 3)
    producer = rig.producer()
    rig.loop.set_credit(consumer, 0)
    accept(rig, consumer, words[:1])
    rig.step(rig.publish(producer, b"new"))
    assert len(rig.queue().held_by(consumer)) == 3
    rig.step(rig.publish(producer, b"newer"), Settle(consumer, pack_words(words[1:2]), RELEASED))
    assert list(rig.queue().held_by(consumer)) == words[2:]
    accept(rig, consumer, words[2:])
    rig.step(rig.publish(producer, b"newest"), Inspect("key", lambda state: state))
    assert not rig.queue().held_by(consumer)


def test_a_settlement_overtakes_no_message_that_came_before_it() -> None:
    """A queue that lives as long as it has messages keeps the one that was sent before the last was accepted."""
    rig = Rig()
    dynamic = AttachConsumer("key", "", "container", "link", dynamic=Dynamic(Lifetime.NO_MESSAGES))
    (ready,) = rig.do(dynamic)
    assert isinstance(ready, ConsumerReady)
    producer = rig.producer(ready.address)
    rig.loop.set_credit(ready.consumer, 1)
    rig.do(rig.publish(producer, b"old"))
    queue = rig.loop.state.queues[rig.loop.state.consumers[ready.consumer].queue]
    rig.loop.submit(rig.publish(producer, b"new"))
    accept(rig, ready.consumer, list(queue.held_by(ready.consumer)))
    rig.step(DetachProducer(producer))
    assert rig.loop.state.queues[queue.id].depth == 1


def test_what_is_said_of_a_message_first_holds() -> None:
    """Who gives a message back has not accepted it by settling it afterwards."""
    rig = Rig()
    consumer, words = held(rig, 1)
    rig.loop.set_credit(consumer, 0)
    rig.step(Settle(consumer, pack_words(words), RELEASED, "reply"), Settle(consumer, pack_words(words), ACCEPTED))
    assert rig.queue().available == 1


def test_one_that_comes_with_a_message_is_no_later_for_it() -> None:
    """Its time begins when it comes, not with the tick that puts it off."""
    rig = Rig()
    consumer, words = held(rig, 1)
    producer = rig.producer()
    rig.loop.set_credit(consumer, 0)
    rig.step(rig.publish(producer, b"one"))
    rig.completed()
    rig.now_us += 1000
    by_us = rig.now_us + 1000 * rig.loop.config.lazy_write_ms
    rig.loop.submit(Settle(consumer, pack_words(words), ACCEPTED))
    rig.loop.submit(rig.publish(producer, b"two"))
    assert rig.due == NOW
    rig.step()
    assert rig.queue().held_by(consumer)
    assert rig.loop.schedule.write_by_us == by_us


def test_more_than_a_run_takes_is_decided_with_the_next_tick() -> None:
    """What is gathered has a bound: a full run waits no longer."""
    rig = Rig(log_config=LogConfig(ballast_bytes=0))
    consumer, words = held(rig, 2100)
    producer = rig.producer()
    rig.loop.set_credit(consumer, 0)
    for start in range(0, len(words), 3):
        accept(rig, consumer, words[start : start + 3])
    rig.step(rig.publish(producer, b"new"))
    assert 0 < len(rig.queue().held_by(consumer)) < 100
    assert rig.loop.is_waiting


def test_as_many_as_a_tick_takes_wait_for_no_others() -> None:
    """They are due like anything else, and decided with the messages that come beside them."""
    rig = Rig(config=EngineConfig(tick_messages_max=3))
    consumer, words = held(rig, 3)
    producer = rig.producer()
    rig.loop.set_credit(consumer, 0)
    for word in words[:2]:
        accept(rig, consumer, [word])
    assert rig.due == LATER
    accept(rig, consumer, words[2:])
    assert rig.due == FULL
    rig.step(rig.publish(producer, b"new"))
    assert not rig.queue().held_by(consumer)


def test_nothing_is_settled_between_the_parts_of_a_command() -> None:
    """What an accept waits for may be a message that reaches its queues over many ticks."""
    rig = Rig(config=EngineConfig(tick_changes_max=5))
    consumer, words = held(rig, 3)
    rig.loop.set_credit(consumer, 0)
    rig.do(DeclareMuxer("key", "all", MuxerKind.SIMPLE))
    for number in range(12):
        rig.do(DeclareQueue("key", f"q{number}", Settings()), AttachMember("key", "all", f"q{number}"))
    producer = rig.producer("/muxers/all/x")
    rig.step(rig.publish(producer, b"for all"))
    assert rig.due >= SOON
    accept(rig, consumer, words)
    rig.step()
    assert len(rig.queue().held_by(consumer)) == 3
    rig.do()
    assert not rig.queue().held_by(consumer)
    assert rig.queue("q11").depth == 1


def test_what_is_made_due_is_decided_before_what_comes_later() -> None:
    """A driver that ends its connections wants all written now: a step is due, and it writes the settlement."""
    rig = Rig()
    consumer, words = held(rig, 1)
    accept(rig, consumer, words)
    assert rig.due == LATER
    rig.loop.make_due()
    assert rig.due >= SOON
    assert rig.loop.schedule.next_us == 0
    (seen,) = [effect.value for effect in rig.do(Inspect("k", lambda state: state)) if isinstance(effect, Answered)]
    assert seen.queue_named("q").depth == 0
    assert rig.loop.log.durable_end == rig.loop.log.log_end
