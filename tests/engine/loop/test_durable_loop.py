"""What leaves the loop, when, and in which order."""

import errno
from dataclasses import replace
from unittest.mock import Mock

import pytest

from ambermq.engine.commands import (
    AttachConsumer,
    AttachProducer,
    DeclareQueue,
    DeleteQueue,
    DetachConsumer,
    Inspect,
    Settle,
)
from ambermq.engine.config import EngineConfig
from ambermq.engine.effects import Answered, ConsumerEnded, Deliver, OutcomeApplied, PublishDone, RefusedCommand
from ambermq.engine.entries.entry_word import pack_words
from ambermq.engine.entries.outcome import ACCEPTED, RELEASED, Outcome, OutcomeKind
from ambermq.engine.events.registry import TYPE_NAMES
from ambermq.engine.loop.schedule import FOREVER_US, FULL, LATER, SOON
from ambermq.engine.settings.queue_settings import Settings
from ambermq.log.errors import LogFailed
from tests.engine.rig import COLD, Rig, delivered, held

TYPES = {name: number for number, name in TYPE_NAMES.items()}


def test_an_accepted_durable_message_leaves_with_the_sync_and_its_delivery_after_it() -> None:
    """Neither before; the outcome first."""
    rig = Rig()
    consumer, producer = rig.consumer(credit=5), rig.producer()
    assert rig.step(rig.publish(producer, b"one", b"two")) == []
    done, *deliveries = rig.completed()
    assert type(done) is PublishDone
    assert (done.kind, done.count) == (OutcomeKind.ACCEPTED, 2)
    assert delivered(deliveries) == [(consumer, b"one"), (consumer, b"two")]
    assert not rig.loop.is_waiting


def test_a_message_that_need_not_be_durable_leaves_with_the_write() -> None:
    """Outcome and delivery, before any sync, but never before the record is written."""
    rig = Rig()
    consumer, producer = rig.consumer(credit=5), rig.producer()
    effects = rig.step(rig.publish(producer, b"one", durable=False))
    assert [type(effect) for effect in effects] == [PublishDone, Deliver]
    assert delivered(effects) == [(consumer, b"one")]
    assert rig.loop.log.durable_end < rig.loop.log.log_end
    assert not rig.loop.log.draft.record_count
    assert rig.batches()[-1] == [TYPES["published"], TYPES["acquired"]]


def test_no_delivery_overtakes_another_on_its_link() -> None:
    """A message that need not wait stays behind one that waits."""
    rig = Rig()
    consumer, producer = rig.consumer(credit=5), rig.producer()
    assert rig.step(rig.publish(producer, b"durable")) == []
    assert delivered(rig.step(rig.publish(producer, b"volatile", durable=False))) == []
    assert delivered(rig.completed()) == [(consumer, b"durable"), (consumer, b"volatile")]


def test_no_delivery_overtakes_another_that_waited_longer_than_it_had_to() -> None:
    """What stood behind an older effect keeps its successors behind it too."""
    rig = Rig()
    other = rig.consumer("other", credit=5)
    consumer, producer = rig.consumer(credit=5), rig.producer()
    side = rig.producer("other")
    early = rig.publish(producer, b"first")
    assert rig.step(rig.publish(side, b"side"), early) == []
    assert delivered(rig.step(rig.publish(producer, b"second", durable=False))) == []
    assert delivered(rig.completed()) == [(other, b"side"), (consumer, b"first"), (consumer, b"second")]


def test_a_settled_delivery_leaves_only_when_its_settlement_is_durable() -> None:
    """Even of a message that was durable long before."""
    rig = Rig()
    producer = rig.producer()
    rig.do(rig.publish(producer, b"one"))
    consumer = rig.consumer(settled=True)
    rig.loop.set_credit(consumer, 1)
    assert rig.step() == []
    assert rig.queue().accepted == 1
    (effect,) = rig.completed()
    assert type(effect) is Deliver
    assert effect.settled
    rig.storage.crash(rig.storage.rng)
    assert Rig(rig.storage).queue().depth == 0


def test_an_answer_leaves_at_once_when_all_it_saw_is_durable() -> None:
    """And with the sync otherwise, even though it wrote nothing itself."""
    rig = Rig()
    rig.do(DeclareQueue("key", "q", Settings()))
    look = Inspect("look", lambda state: len(state.queues))
    assert rig.step(look) == [Answered("look", 1, after=-1)]
    assert rig.step(DeclareQueue("key", "r", Settings()), look) == []
    assert [effect.value for effect in rig.completed() if type(effect) is Answered] == [{"created": True}, 2]


def test_a_refusal_waits_for_nothing() -> None:
    """Nothing was written."""
    rig = Rig()
    (refused,) = rig.step(AttachProducer("key", "/nowhere", "container", "link"))
    assert type(refused) is RefusedCommand


def obey_deadlines(rig: Rig, until_us: int) -> None:
    """Step when the loop wants to be stepped, take what the log has finished, until a time."""
    while rig.loop.schedule.next_us <= until_us:
        assert rig.loop.schedule.next_us >= rig.now_us
        rig.now_us = rig.loop.schedule.next_us
        assert rig.step() == []
        rig.completed()
    rig.now_us = until_us


def test_a_settlement_without_a_reply_is_durable_within_its_deadlines() -> None:
    """By `next_us` alone, within lazy_write_ms and lazy_sync_ms, 50 ms at most."""
    rig = Rig()
    consumer, words = held(rig, 1)
    rig.now_us += 300
    assert rig.step(Settle(consumer, pack_words(words), ACCEPTED)) == []
    assert rig.loop.log.draft.record_count == 1
    config = rig.loop.config
    bound_us = 1000 * (config.lazy_write_ms + config.lazy_sync_ms)
    assert bound_us <= 50_000
    obey_deadlines(rig, rig.now_us + bound_us)
    assert rig.loop.log.durable_end == rig.loop.log.log_end
    rig.storage.crash(rig.storage.rng)
    assert Rig(rig.storage).queue().depth == 0


def test_a_settlement_that_is_put_off_is_durable_within_the_same_deadlines() -> None:
    """Its time begins when the driver asks first; asking again does not move it."""
    rig = Rig()
    consumer, words = held(rig, 1)
    rig.loop.submit(Settle(consumer, pack_words(words), ACCEPTED))
    assert rig.due == LATER
    assert rig.loop.is_waiting
    assert rig.loop.schedule.due(rig.now_us + 5_000) == LATER
    config = rig.loop.config
    obey_deadlines(rig, rig.now_us + 1000 * (config.lazy_write_ms + config.lazy_sync_ms))
    rig.storage.crash(rig.storage.rng)
    assert Rig(rig.storage).queue().depth == 0


def test_a_settlement_that_makes_something_available_is_not_put_off() -> None:
    """Nor one that is waited for."""
    rig = Rig()
    consumer, words = held(rig, 2)
    for settle in (
        Settle(consumer, pack_words(words[:1]), RELEASED),
        Settle(consumer, pack_words(words[1:]), ACCEPTED, "reply"),
    ):
        rig.loop.submit(settle)
        assert rig.due >= SOON
        rig.do()


def test_settlements_that_keep_coming_do_not_put_off_the_first() -> None:
    """One a millisecond: each is durable within 50 ms of its own."""
    rig = Rig()
    consumer, words = held(rig, 100)
    ends: list[tuple[int, int]] = []
    start_us = rig.now_us
    for number, word in enumerate(words):
        obey_deadlines(rig, start_us + 1000 * number)
        rig.step(Settle(consumer, pack_words([word]), ACCEPTED))
        ends.append((rig.now_us, rig.loop.log.draft.next_offset))
        overdue = [end for at_us, end in ends if at_us + 50_000 <= rig.now_us]
        assert rig.loop.log.durable_end >= max(overdue, default=0)
    assert rig.loop.log.durable_end > ends[40][1]


def test_a_written_batch_is_synced_even_while_an_older_sync_was_under_way() -> None:
    """A lazy batch behind a promise keeps its own deadline."""
    rig = Rig()
    consumer, words = held(rig, 1)
    producer = rig.producer()
    rig.step(rig.publish(producer, b"promise"), Settle(consumer, pack_words(words), RELEASED))
    rig.loop.set_credit(consumer, 0)
    rig.step(Settle(consumer, pack_words(words), ACCEPTED))
    rig.completed()
    obey_deadlines(rig, rig.now_us + 50_000)
    assert rig.loop.log.durable_end == rig.loop.log.log_end
    assert not rig.loop.is_waiting


def test_a_settlement_with_a_reply_is_answered_with_the_sync() -> None:
    """Its reply comes back as it was given."""
    rig = Rig()
    consumer, words = held(rig, 2)
    assert rig.step(Settle(consumer, pack_words(words), ACCEPTED, "reply")) == []
    (applied,) = rig.completed()
    assert type(applied) is OutcomeApplied
    assert applied.reply == "reply"


def test_the_start_is_marked_too() -> None:
    """Even where nothing else ever happens."""
    rig = Rig()
    obey_deadlines(rig, rig.now_us + 1000 * rig.loop.config.mark_ms)
    assert rig.loop.log.is_marked


def test_credit_counts_what_was_dealt_and_has_not_left() -> None:
    """A grant that is said again does not deal twice as much."""
    rig = Rig()
    consumer, producer = rig.consumer(credit=2), rig.producer()
    rig.step(rig.publish(producer, b"1", b"2", b"3", b"4"))
    rig.loop.set_credit(consumer, 3)
    rig.step()
    assert len(rig.queue().held_by(consumer)) == 3
    rig.loop.set_credit(consumer, 1)
    rig.step()
    assert len(rig.queue().held_by(consumer)) == 3
    assert len(delivered(rig.completed())) == 3


def test_an_idle_log_is_marked_once() -> None:
    """So that the last durable end is known to a recovery."""
    rig = Rig()
    rig.do(DeclareQueue("key", "q", Settings()))
    assert not rig.loop.log.is_marked
    obey_deadlines(rig, rig.now_us + 1000 * rig.loop.config.mark_ms)
    assert rig.loop.log.is_marked
    assert rig.loop.schedule.next_us == FOREVER_US


@pytest.mark.parametrize("operation", ["write", "datasync"])
def test_nothing_leaves_after_a_failed_write_or_sync(operation: str) -> None:
    """LogFailed, then and from every later call."""
    rig = Rig()
    rig.consumer(credit=5)
    producer = rig.producer()
    left: list[object] = []
    rig.storage.fail(errno.EIO, operation=operation)
    if operation == "datasync":
        left += rig.step(rig.publish(producer, b"one"))
    else:
        rig.loop.submit(rig.publish(producer, b"one"))
        with pytest.raises(LogFailed):
            left += rig.step()
    with pytest.raises(LogFailed):
        left += rig.completed()
    with pytest.raises(LogFailed):
        left += rig.step(rig.publish(producer, b"two", durable=False))
    assert left == []


def test_a_sync_that_cannot_be_requested_stops_the_loop() -> None:
    """The first failure is the last: nothing is decided after it."""
    rig = Rig()
    producer = rig.producer()
    rig.step(rig.publish(producer, b"one", durable=False))
    failure = OSError(errno.EIO, "sync")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(rig.loop.log), "request_sync", Mock(side_effect=failure))
        with pytest.raises(OSError, match="sync"):
            rig.loop.sync_or_mark(rig.now_us + 10_000_000)
    assert rig.loop.failure is failure
    with pytest.raises(OSError, match="sync"):
        rig.step(rig.publish(producer, b"two"))


def test_the_clock_never_runs_backwards() -> None:
    """An event is no older than the one before, whatever the clock says."""
    rig = Rig()
    rig.do(DeclareQueue("key", "q", Settings()))
    before = rig.loop.state.time_us
    rig.now_us = 5
    rig.do(DeclareQueue("key", "r", Settings()))
    assert rig.loop.state.time_us == before


def test_a_tick_is_full_by_messages_or_by_bytes() -> None:
    """What was gathered counts until the step; what is dealt in one tick is bounded too."""
    rig = Rig(config=EngineConfig(tick_messages_max=3, tick_bytes_max=100, dispatch_messages_max=2))
    producer = rig.producer()
    for commands in ([b"1", b"2", b"3"], [bytes(100)]):
        assert rig.due < FULL
        rig.loop.submit(rig.publish(producer, *commands))
        assert rig.due == FULL
        rig.do()
    consumer = rig.consumer()
    rig.loop.set_credit(consumer, 9)
    assert len(delivered(rig.step())) == 2
    assert rig.due >= SOON
    assert len(delivered(rig.step())) == 2
    rig.step()
    assert rig.due < SOON


def test_much_that_is_unsynced_is_congestion() -> None:
    """Until the sync returns."""
    rig = Rig(log_config=replace(COLD, unsynced_bytes_max=4096, segment_bytes_min=1 << 20, segment_bytes_max=1 << 20))
    producer = rig.producer()
    rig.step(rig.publish(producer, bytes(3000)))
    assert not rig.loop.log.is_congested
    rig.step(rig.publish(producer, bytes(1000)))
    assert rig.loop.log.is_congested
    rig.completed()
    assert not rig.loop.log.is_congested


def test_the_records_of_one_command_share_a_batch() -> None:
    """However full it is: a queue that exists and is attached to nothing would swallow messages for ever."""
    for size in range(3700, 4100, 8):
        rig = Rig()
        producer = rig.producer()
        rig.step(rig.publish(producer, bytes(size)), AttachConsumer("key", "new", "container", "link"))
        wiring = [TYPES["queue-declared"], TYPES["attached"], TYPES["consumer-attached"]]
        assert any(wiring == batch[-3:] for batch in rig.batches())


# -- consumers that go


def test_a_consumer_that_goes_leaves_what_never_left_uncounted() -> None:
    """What waited for the sync is not sent, and goes back as if it had never been dealt."""
    rig = Rig()
    consumer, producer = rig.consumer(credit=5), rig.producer()
    assert rig.step(rig.publish(producer, b"one", b"two")) == []
    rig.step(DetachConsumer(consumer))
    assert delivered(rig.completed()) == []
    assert len(rig.queue().returned) == 2
    assert not any(entry.count for entry in rig.queue().entries.values())
    other = rig.consumer(credit=5)
    assert delivered(rig.do()) == [(other, b"one"), (other, b"two")]


@pytest.mark.parametrize("sent", [False, True])
def test_what_a_lost_consumer_had_goes_to_one_that_waits_in_the_same_tick(*, sent: bool) -> None:
    """Sent or not; what was sent counts as failed."""
    rig = Rig()
    consumer, producer = rig.consumer(credit=5), rig.producer()
    other = rig.consumer()
    rig.step(rig.publish(producer, b"one"))
    if sent:
        assert delivered(rig.completed()) == [(consumer, b"one")]
    rig.loop.set_credit(other, 1)
    rig.step()
    effects = rig.step(DetachConsumer(consumer)) + rig.completed()
    assert delivered(effects) == [(other, b"one")]
    assert sum(entry.count for entry in rig.queue().entries.values()) == sent


def test_what_the_link_had_not_sent_comes_back_uncounted_with_the_command() -> None:
    """The gateway names it."""
    rig = Rig()
    consumer, words = held(rig, 2)
    rig.do(DetachConsumer(consumer, pack_words(words[1:])))
    assert {offset: entry.count for offset, entry in rig.queue().entries.items() if entry.count} == {words[0] >> 16: 1}


def test_a_consumer_that_goes_while_a_sync_is_under_way_leaves_what_never_left_uncounted() -> None:
    """From the moment that it goes, before that is decided, nothing leaves for it."""
    rig = Rig()
    consumer, producer = rig.consumer(credit=5), rig.producer()
    assert rig.step(rig.publish(producer, b"one", b"two")) == []
    rig.loop.submit(DetachConsumer(consumer))
    assert delivered(rig.completed()) == []
    rig.do()
    assert len(rig.queue().returned) == 2
    assert not any(entry.count for entry in rig.queue().entries.values())


def test_a_deleted_queue_leaves_no_consumer_waiting_for_it() -> None:
    """Its consumers want nothing any more, and what was dealt to them and waits, or is being read, never leaves."""
    rig = Rig()
    producer = rig.producer()
    rig.do(*[rig.publish(producer, b"%d" % number * 300) for number in range(4)])
    rig.forget_pages()
    parked, other = rig.consumer(), rig.consumer()
    rig.loop.set_credit(parked, 3)
    assert delivered(rig.step()) == []
    assert rig.loop._release.queues
    rig.loop.set_credit(other, 9)
    assert rig.step(rig.publish(producer, b"waits for the sync"), DeleteQueue("key", "q")) == []
    assert not rig.loop.demand.wants
    assert not rig.loop.demand.rings
    assert not rig.loop._release.queues
    effects = rig.completed()
    assert delivered(effects) == []
    assert [effect.consumer for effect in effects if type(effect) is ConsumerEnded] == [parked, other]
    assert not rig.loop.is_waiting


@pytest.mark.parametrize("outcome", [RELEASED, Outcome(OutcomeKind.MODIFIED, delivery_failed=True)])
def test_neighbouring_outcomes_of_one_tick_are_one_record(outcome: Outcome) -> None:
    """Equal outcomes coalesce in any order, though each was decoded by itself, if no consumer waits."""
    rig = Rig()
    consumer, words = held(rig, 6)
    before = rig.loop.log.draft.next_offset
    rig.do(*[Settle(consumer, pack_words([word]), replace(outcome)) for word in reversed(words)])
    assert rig.loop.log.draft.next_offset == before + 1
    assert list(rig.queue().returned) == words
    assert {entry.count for entry in rig.queue().entries.values()} == {int(outcome.delivery_failed)}


def test_a_deleted_queue_ends_its_consumers_when_that_is_durable() -> None:
    """And their going afterwards is nothing."""
    rig = Rig()
    consumer, _ = held(rig, 1)
    assert rig.step(DeleteQueue("key", "q")) == []
    assert [type(effect) for effect in rig.completed()] == [ConsumerEnded, Answered]
    assert rig.do(DetachConsumer(consumer)) == []
    assert consumer not in rig.loop.demand.wants


# -- bodies


def test_the_end_of_a_sync_releases_only_what_was_written_before_it_began() -> None:
    """Sync A begins, B is written, A ends: only A's outcome and delivery leave. Those of B leave with the next sync."""
    rig = Rig()
    consumer, producer = rig.consumer(credit=5), rig.producer()
    syncer = rig.loop.log._syncer
    assert rig.step(rig.publish(producer, b"A")) == []
    begun = syncer.target
    assert rig.step(rig.publish(producer, b"B")) == []
    later, syncer.target = syncer.target, begun
    done, *deliveries = rig.completed()
    assert type(done) is PublishDone
    assert delivered(deliveries) == [(consumer, b"A")]
    assert rig.loop.log.durable_end == begun.end < rig.loop.log.log_end
    assert rig.loop.is_waiting
    assert (syncer.target.end, syncer.synced.end) == (later.end, begun.end), "the next sync is requested"
    done, *deliveries = rig.completed()
    assert type(done) is PublishDone
    assert delivered(deliveries) == [(consumer, b"B")]


def test_a_read_that_ends_during_a_sync_releases_nothing_that_waits_for_it() -> None:
    """The loop wakes up for reads too; only the durable end tells what may leave."""
    rig = Rig()
    rig.consumer(credit=5)
    producer = rig.producer()
    syncer = rig.loop.log._syncer
    begun = syncer.target
    assert rig.step(rig.publish(producer, b"A")) == []
    for _ in range(3):
        syncer.target = begun
        assert rig.completed() == []
    assert delivered(rig.completed()) != []
