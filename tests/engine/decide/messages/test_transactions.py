"""Transactions in the engine: all of one, or nothing."""

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ambermq.engine.commands import (
    COMMITTED,
    ROLLBACK,
    TIMEOUT,
    BeginTransaction,
    DeleteQueue,
    DetachConsumer,
    Discharge,
    Publish,
    Settle,
    Transaction,
    UpdateQueue,
)
from ambermq.engine.config import EngineConfig
from ambermq.engine.effects import Answered, Effect, PublishDone, RefusedCommand
from ambermq.engine.entries.entry_word import pack_words, unpack_words
from ambermq.engine.entries.outcome import ACCEPTED, REJECTED, Outcome, OutcomeKind
from ambermq.engine.events import Committed, Published, Scheduled, Timed
from ambermq.engine.events.registry import NUMBERS
from ambermq.log.config import LogConfig
from tests.engine.decide.messages.test_dead_letters import again, bodies_of, declare
from tests.engine.rig import COLD, Rig, delivered, held
from tests.log.simulated import SimulatedStorage


def begun(rig: Rig, number: int = 1) -> Transaction:
    """A transaction that is open."""
    transaction = Transaction(b"%d" % number)
    rig.do(BeginTransaction(transaction))
    return transaction


def posts(rig: Rig, transaction: Transaction, producer: int, *bodies: bytes, **fields: Any) -> list[Effect]:
    """Post messages; returns their outcomes."""
    messages = rig.publish(producer, *bodies)
    messages.transaction = transaction
    for name, value in fields.items():
        setattr(messages, name, value)
    return rig.do(messages)


def ended(rig: Rig, transaction: Transaction, *, fails: bool = False) -> str:
    """Discharge a transaction; returns the answer, or the condition of the refusal."""
    effects = rig.do(Discharge("key", transaction, fails))
    (answer,) = [one for one in effects if isinstance(one, Answered | RefusedCommand)]
    return answer.condition if isinstance(answer, RefusedCommand) else str(answer.value)


def events_of(rig: Rig, kind: type) -> list[Any]:
    """The events of one class in the log."""
    events, _ = rig.loop.replay(0).read(events_max=100_000, bytes_max=1 << 26)
    return [event for event in events if type(event) is kind]


def all_of(rig: Rig, name: str) -> list[bytes]:
    """The messages that a consumer of a queue gets, also those that are read from the disk."""
    consumer = rig.consumer(name, credit=1000)
    effects = [effect for _ in range(2 * rig.queue(name).depth + 2) for effect in rig.do()]
    return [body for one, body in delivered(effects) if one == consumer]


def test_posts_are_there_with_the_commit() -> None:
    """Before it there is no trace of them, and their outcome says nothing of the disk."""
    rig = Rig()
    declare(rig, "q")
    one = begun(rig)
    (done,) = posts(rig, one, rig.producer(), b"a", b"b")
    assert isinstance(done, PublishDone)
    assert (done.kind, done.transaction, done.after) == (OutcomeKind.ACCEPTED, one, 0)
    assert rig.queue().depth == 0
    rig.do(rig.publish(rig.producer(), b"plain"))
    assert ended(rig, one) == COMMITTED
    (event,) = events_of(rig, Committed)
    rig = again(rig)
    assert bodies_of(rig, "q") == [b"plain", b"a", b"b"]
    assert (event.posted, event.settled) == (2, 0)
    assert event.first == event.offset - 2


def test_a_rollback_leaves_nothing_of_the_posts() -> None:
    """Neither in the queue nor in the log."""
    rig = Rig()
    one = begun(rig)
    posts(rig, one, rig.producer(), b"a")
    assert ended(rig, one, fails=True) == ""
    assert events_of(rig, Published) == []
    rig = again(rig)
    assert rig.queue().depth == 0


def test_outcomes_have_their_effect_with_the_commit() -> None:
    """Accepted ones are gone, a rejected one too; both in one batch with the posts."""
    rig = Rig()
    consumer, words = held(rig, 3)
    one = begun(rig)
    for word in words[:2]:
        one.retire(consumer, word, ACCEPTED, is_settled=True)
    one.retire(consumer, words[2], REJECTED, is_settled=False)
    posts(rig, one, rig.producer("other"), b"answer")
    assert rig.queue().acquired_count == 3
    assert ended(rig, one) == COMMITTED
    assert rig.queue().depth == 0
    assert rig.queue().counters.rejected == 1
    assert bodies_of(rig, "other") == [b"answer"]


def test_a_rollback_returns_what_the_receiver_has_settled() -> None:
    """With a failed delivery more. What it has not settled stays with it."""
    rig = Rig()
    consumer, words = held(rig, 2)
    one = begun(rig)
    one.retire(consumer, words[0], ACCEPTED, is_settled=True)
    one.retire(consumer, words[1], ACCEPTED, is_settled=False)
    assert ended(rig, one, fails=True) == ""
    assert list(rig.queue().held_by(consumer)) == words[1:]
    assert rig.queue().entries[words[0] >> 16].count == 1
    assert list(rig.queue().returned) == words[:1]


def test_a_delivery_that_is_gone_makes_a_rollback() -> None:
    """Its consumer has ended: the message is for another one."""
    rig = Rig()
    consumer, words = held(rig, 1)
    one = begun(rig)
    one.retire(consumer, words[0], ACCEPTED, is_settled=True)
    posts(rig, one, rig.producer("other"), b"answer")
    rig.do(DetachConsumer(consumer))
    assert ended(rig, one) == ROLLBACK
    assert rig.queue().available == 1
    assert bodies_of(rig, "other") == []
    assert rig.loop.transactions.kept is None


def test_a_deleted_queue_makes_a_rollback() -> None:
    """Of everything, the posts to other queues too."""
    rig = Rig()
    one = begun(rig)
    posts(rig, one, rig.producer("a"), b"1")
    posts(rig, one, rig.producer("b"), b"2")
    rig.do(DeleteQueue("key", "a"))
    assert ended(rig, one) == ROLLBACK
    assert bodies_of(rig, "b") == []


def test_a_post_keeps_its_room() -> None:
    """A full queue refuses the post, and others meanwhile, but not the commit."""
    rig = Rig()
    declare(rig, "q", messages_max=3)
    producer = rig.producer()
    one = begun(rig)
    assert [done.kind for done in posts(rig, one, producer, b"1", b"2")] == [OutcomeKind.ACCEPTED]  # type: ignore[union-attr]
    kinds = [(done.kind, done.count) for done in rig.do(rig.publish(producer, b"x", b"y"))]  # type: ignore[union-attr]
    assert sorted(kinds) == [(OutcomeKind.ACCEPTED, 1), (OutcomeKind.REJECTED, 1)]
    kinds = [(done.kind, done.count) for done in posts(rig, one, producer, b"3")]  # type: ignore[union-attr]
    assert kinds == [(OutcomeKind.REJECTED, 1)]
    assert ended(rig, one) == COMMITTED
    assert bodies_of(rig, "q") == [b"x", b"1", b"2"]


def test_the_room_of_bytes_is_kept_too() -> None:
    """And a rollback gives it back."""
    rig = Rig()
    declare(rig, "q", bytes_max=10)
    producer, one = rig.producer(), begun(rig)
    posts(rig, one, producer, b"123456")
    (done,) = rig.do(rig.publish(producer, b"12345"))
    assert done.kind is OutcomeKind.REJECTED  # type: ignore[union-attr]
    ended(rig, one, fails=True)
    (done,) = rig.do(rig.publish(producer, b"12345"))
    assert done.kind is OutcomeKind.ACCEPTED  # type: ignore[union-attr]


def test_a_ring_takes_the_commit_and_drops_its_oldest() -> None:
    """It is never refused, and the queue is at its maximum again at once."""
    rig = Rig(config=EngineConfig(dispatch_messages_max=2))
    declare(rig, "q", messages_max=3, overflow="drop-head")
    producer = rig.producer()
    rig.do(rig.publish(producer, b"1", b"2", b"3"))
    one = begun(rig)
    posts(rig, one, producer, *[b"%d" % number for number in range(10, 17)])
    assert ended(rig, one) == COMMITTED
    rig = again(rig)
    assert bodies_of(rig, "q") == [b"14", b"15", b"16"]


def test_the_policy_dead_letter_refuses_in_a_transaction() -> None:
    """A commit cannot wait for the target."""
    rig = Rig()
    declare(rig, "dead")
    declare(rig, "q", messages_max=1, overflow="dead-letter", dead_letter="dead")
    kinds = [(done.kind, done.count) for done in posts(rig, begun(rig), rig.producer(), b"1", b"2")]  # type: ignore[union-attr]
    assert kinds == [(OutcomeKind.ACCEPTED, 1), (OutcomeKind.REJECTED, 1)]


def test_a_settled_post_that_is_refused_dooms_the_transaction() -> None:
    """Its sender gets no outcome: the commit says it."""
    rig = Rig()
    declare(rig, "q", messages_max=1)
    one = begun(rig)
    posts(rig, one, rig.producer(), b"1", b"2", settled=True)
    assert ended(rig, one) == ROLLBACK
    assert bodies_of(rig, "q") == []


def test_a_time_to_live_begins_with_the_post() -> None:
    """The commit gives the rest of it."""
    rig = Rig()
    one = begun(rig)
    posts(rig, one, rig.producer(), b"1", ttl_ms=100)
    rig.now_us += 60_000
    assert ended(rig, one) == COMMITTED
    (word,) = rig.queue().ready
    assert rig.queue().expiry_of(word) == 1_100_000


def test_an_old_transaction_is_rolled_back() -> None:
    """By the loop's timer; its discharge and its posts say so then."""
    rig = Rig(config=EngineConfig(transaction_ms_max=10))
    consumer, words = held(rig, 1)
    one, producer = begun(rig), rig.producer("other")
    one.retire(consumer, words[0], ACCEPTED, is_settled=True)
    posts(rig, one, producer, b"a")
    rig.now_us += 10_000
    assert rig.loop.schedule.timer_us <= rig.now_us
    rig.step()
    assert rig.loop.transactions.count == 0
    assert list(rig.queue().returned) == words
    (done,) = posts(rig, one, producer, b"b")
    assert (done.kind, done.condition) == (OutcomeKind.REJECTED, TIMEOUT)  # type: ignore[union-attr]
    assert ended(rig, one) == TIMEOUT
    assert bodies_of(rig, "other") == []


def test_a_full_disk_refuses_the_post(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the condition of a plain message; the commit of nothing is fine."""
    rig = Rig()
    producer, one = rig.producer(), begun(rig)
    monkeypatch.setattr(type(rig.loop.log), "room_bytes", lambda _log: 0)
    (done,) = posts(rig, one, producer, b"a")
    assert (done.kind, done.condition) == (OutcomeKind.REJECTED, "amqp:resource-limit-exceeded")  # type: ignore[union-attr]
    assert ended(rig, one) == COMMITTED


@pytest.mark.parametrize("size", [300, 3000, 20_000])
def test_a_commit_beyond_a_batch_is_one_batch(size: int) -> None:
    """The largest messages go before it in pieces; all come out as they were."""
    config = LogConfig(batch_bytes_target=4096, batch_bytes_max=16_384)
    rig = Rig(log_config=config, config=EngineConfig(chunk_bytes=2000))
    one, producer = begun(rig), rig.producer()
    bodies = [bytes([number]) * (size + number) for number in range(20)] + [b"small"] * 5
    for body in bodies:
        posts(rig, one, producer, body)
    assert ended(rig, one) == COMMITTED
    assert all_of(rig, "q") == bodies
    types = rig.batches()
    (last,) = [batch for batch in types if NUMBERS[Committed] in batch]
    assert last.count(NUMBERS[Published]) == 25
    assert [each for batch in types for each in batch].count(NUMBERS[Published]) == 25


@settings(max_examples=80, deadline=None)
@given(data=st.data())
def test_a_commit_is_as_its_parts_one_by_one(data: st.DataObject) -> None:
    """The same queues as without a transaction, whatever is posted and settled in it."""
    steps = data.draw(st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 3)), max_size=12))
    rigs = []
    for is_whole in (True, False):
        rig = Rig()
        consumer, words = held(rig, 4)
        producers = {name: rig.producer(name) for name in "ab"}
        one = begun(rig)
        done: set[int] = set()
        for name, number in steps:
            if is_whole:
                posts(rig, one, producers[name], b"%d" % number)
            else:
                rig.do(rig.publish(producers[name], b"%d" % number))
            if number in done:
                continue
            done.add(number)
            if is_whole:
                one.retire(consumer, words[number], ACCEPTED, is_settled=True)
            else:
                rig.do(Settle(consumer, pack_words([words[number]]), ACCEPTED))
        assert ended(rig, one) == COMMITTED
        rigs.append(rig)
    for name in ("a", "b", "q"):
        assert bodies_of(rigs[0], name) == bodies_of(rigs[1], name)
    assert rigs[0].queue().accepted == rigs[1].queue().accepted


@pytest.mark.parametrize("seed", range(40))
def test_a_power_cut_leaves_all_of_a_transaction_or_nothing(seed: int) -> None:
    """What was answered is there; what was not is there as a whole, or not at all."""
    rng = random.Random(seed)
    storage = SimulatedStorage(random.Random(seed))
    log_config = LogConfig(batch_bytes_target=4096, batch_bytes_max=16_384) if seed % 2 else COLD
    rig = Rig(storage, log_config=log_config, config=EngineConfig(chunk_bytes=1000))
    consumer, words = held(rig, 20)
    producers = [rig.producer(name) for name in ("a", "b")]
    answered = 0
    for number in range(4):
        one = begun(rig, number)
        for part in range(5):
            size = rng.choice((10, 900, 5000))
            posts(rig, one, producers[part % 2], b"%d" % number * size)
            one.retire(consumer, words[number * 5 + part], ACCEPTED, is_settled=True)
        effects = rig.step(Discharge("key", one))
        if rng.random() < 0.4:
            break
        effects += rig.completed()
        assert [one for one in effects if type(one) is Answered and one.value == COMMITTED]
        answered += 1
    storage.crash(rng)
    rig.loop.log._workers.close()
    left = Rig(storage, log_config=log_config)
    count = left.queue("a").depth + left.queue("b").depth
    assert count in (5 * answered, 5 * answered + 5)
    assert left.queue().depth == 20 - count
    got = [body for name in ("a", "b") for body in all_of(left, name)]
    assert sorted(body[:1] for body in got) == sorted(b"%d" % number for number in range(count // 5) for _ in range(5))
    assert all(body == body[:1] * len(body) for body in got)


def test_messages_of_a_transaction_have_their_own_times() -> None:
    """One event has those of neighbouring posts; the past is available with the commit."""
    rig = Rig(now_us=1_000_000_000)
    declare(rig, "q")
    one, producer = begun(rig), rig.producer()
    for body, time_ms in ((b"a", 1_000_300), (b"b", 1), (b"c", 1_000_200)):
        posts(rig, one, producer, body, time_ms=time_ms)
    posts(rig, one, producer, b"d", b"e", time_ms=1_000_200, times_ms=[1_000_200, 1_000_100])
    assert ended(rig, one) == COMMITTED
    (event,) = events_of(rig, Scheduled)
    (start,) = {word >> 16 for word in rig.queue().ready}
    assert [event.due_us_of(start + index) for index in (-1, 1, 2, 3)] == [
        1_000_300_000,
        1_000_200_000,
        1_000_200_000,
        1_000_100_000,
    ]
    rig = again(rig)
    rig.now_us += 400_000
    rig.do()
    assert all_of(rig, "q") == [b"b", b"e", b"c", b"d", b"a"]


def test_a_publish_of_a_transaction_is_never_joined_to_another_one() -> None:
    """They end apart."""
    one = Publish("link", 1, 0, [b"a"], [0], 1)
    other = Publish("link", 1, 1, [b"b"], [0], 1, transaction=Transaction(b"1"))
    assert not one.join(other, bytes_max=100)


def test_a_rollback_of_very_many_deliveries_is_no_single_batch() -> None:
    """Whatever the batch holds: neither a rollback nor a refused commit may fail by its size."""
    config = LogConfig(batch_bytes_target=4096, batch_bytes_max=32_768)
    for ends in ("fails", "refused", "late"):
        rig = Rig(log_config=config, config=EngineConfig(transaction_ms_max=10))
        consumer, words = held(rig, 5000)
        one = begun(rig)
        for word in words:
            one.retire(consumer, word, ACCEPTED, is_settled=True)
        if ends == "late":
            rig.now_us += 10_000
            rig.do()
        else:
            one.doom("no" if ends == "refused" else "")
            assert ended(rig, one, fails=ends == "fails") == ("" if ends == "fails" else ROLLBACK)
        assert rig.queue().available == 5000
        assert one.retirements == {}


def test_a_commit_that_does_not_fit_is_refused() -> None:
    """By its own size, whatever was estimated: the broker goes on."""
    rig = Rig(log_config=LogConfig(batch_bytes_target=4096, batch_bytes_max=16_384))
    consumer, words = held(rig, 40)
    one = begun(rig)
    for number, word in enumerate(words):
        outcome = Outcome(OutcomeKind.REJECTED, description=f"{number:04}" + "x" * 90)
        one.retire(consumer, word, outcome, is_settled=True)
    assert ended(rig, one) == ROLLBACK
    assert rig.queue().available == 40


def test_times_of_a_post_are_told_once() -> None:
    """Also if its messages are in pieces: their times are behind all of them."""
    config = LogConfig(batch_bytes_target=4096, batch_bytes_max=16_384)
    rig = Rig(log_config=config, config=EngineConfig(chunk_bytes=2000))
    one = begun(rig)
    posts(rig, one, rig.producer(), *[bytes([number]) * 3000 for number in range(6)], ttl_ms=50, delay_ms=20)
    assert ended(rig, one) == COMMITTED
    assert [len(event.words) // 8 for event in events_of(rig, Scheduled)] == [6]
    assert [event.count for event in events_of(rig, Timed)] == [6]
    rig.now_us += 30_000
    assert [body[:1] for body in all_of(rig, "q")] == [bytes([number]) for number in range(6)]


def test_a_step_of_the_clock_changes_no_time_to_live() -> None:
    """It counts by elapsed time from the post on."""
    rig = Rig()
    one = begun(rig)
    posts(rig, one, rig.producer(), b"1", ttl_ms=10_000)
    rig.loop.correct_clock(3_600_000_000, (rig.now_us, rig.now_us + 3_600_000_000))
    assert ended(rig, one) == COMMITTED
    (event,) = events_of(rig, Timed)
    assert 9_900 <= event.ttl_ms <= 10_000


def test_a_time_of_the_clock_is_that_of_the_post() -> None:
    """A step of the clock before the commit changes nothing; what had expired when it came is not offered."""
    rig = Rig()
    one, producer = begun(rig), rig.producer()
    consumer = rig.consumer(credit=10)
    now_ms = rig.now_us // 1000
    posts(rig, one, producer, b"1", expires_ms=now_ms - 1)
    posts(rig, one, producer, b"2", expires_ms=now_ms + 10_000)
    rig.loop.correct_clock(3_600_000_000, (rig.now_us, rig.now_us + 3_600_000_000))
    assert ended(rig, one) == COMMITTED
    (event,) = events_of(rig, Timed)
    first, second = unpack_words(event.ttls)
    assert first == event.ttl_ms == 0
    assert 9_900 <= second <= 10_000
    assert rig.queue().held_by(consumer).count == 1
    rig.now_us += 10_000
    rig.do()
    assert rig.queue().counters.discarded == 1


def test_a_late_transaction_gives_up_what_failed_too_often() -> None:
    """As a rollback of its client does."""
    rig = Rig(config=EngineConfig(transaction_ms_max=10))
    declare(rig, "dead")
    declare(rig, "q", delivery_count_max=1, dead_letter="dead")
    consumer, words = held(rig, 1)
    one = begun(rig)
    one.retire(consumer, words[0], ACCEPTED, is_settled=True)
    rig.now_us += 10_000
    rig.do()
    rig.step()
    assert (rig.queue().depth, rig.queue("dead").depth) == (0, 1)


def test_a_queue_that_is_no_ring_any_more_keeps_its_messages() -> None:
    """Its policy at the commit counts."""
    rig = Rig()
    declare(rig, "q", messages_max=2, overflow="drop-head")
    producer = rig.producer()
    rig.do(rig.publish(producer, b"1", b"2"))
    one = begun(rig)
    posts(rig, one, producer, b"3")
    rig.do(UpdateQueue("key", "q", lambda _state: {}, {"overflow": "reject"}))
    assert ended(rig, one) == COMMITTED
    assert bodies_of(rig, "q") == [b"1", b"2", b"3"]


def test_dead_letters_leave_reserved_room() -> None:
    """A target that has kept its last room for a transaction takes no dead letter."""
    rig = Rig()
    declare(rig, "dead", messages_max=2)
    declare(rig, "q", dead_letter="dead")
    one = begun(rig)
    posts(rig, one, rig.producer("dead"), b"1", b"2")
    consumer, words = held(rig, 1)
    rig.do(Settle(consumer, pack_words(words), REJECTED))
    assert rig.queue().aside.count == 1
    assert ended(rig, one) == COMMITTED
    assert rig.queue("dead").depth == 2


def test_a_refusal_tells_of_the_room_that_transactions_keep() -> None:
    """In the transaction and outside of it, whether its messages came as a run or one by one."""
    texts = set()
    for parts in ((b"1", b"2", b"3"),), ((b"1",), (b"2",), (b"3",)):
        rig = Rig()
        declare(rig, "q", messages_max=2)
        producer, transaction = rig.producer("q"), begun(rig)
        effects = [effect for part in parts for effect in posts(rig, transaction, producer, *part)]
        effects += rig.do(rig.publish(producer, b"4"))
        texts |= {one.description for one in effects if isinstance(one, PublishDone) and one.description}
    (text,) = texts
    assert (
        text == "queue 'q' is full: it holds 2 messages, those of open transactions included, at most 2 (messages_max)"
    )
