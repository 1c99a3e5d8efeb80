"""The overflow policy `block`: a full queue takes what comes on credit given before, and tells when it has room."""

from collections.abc import Sequence

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ambermq.engine.commands import (
    AttachMember,
    AttachProducer,
    BeginTransaction,
    DeclareMuxer,
    DeleteQueue,
    MoveMessages,
    PurgeQueue,
    ResetHost,
    Settle,
    Transaction,
    UpdateQueue,
)
from ambermq.engine.effects import PublishDone, QueueBlocked
from ambermq.engine.entries.discard_reason import MoveReason
from ambermq.engine.entries.entry_word import pack_words
from ambermq.engine.entries.outcome import ACCEPTED, RELEASED, OutcomeKind
from ambermq.engine.model.muxer import MuxerKind
from ambermq.engine.settings.queue_settings import BLOCK
from tests.engine.decide.messages.test_dead_letters import again, bodies_of, declare
from tests.engine.decide.messages.test_expiry import wait
from tests.engine.rig import Rig


def told(effects: Sequence[object]) -> list[tuple[str, bool]]:
    """Return what queues say of themselves, in order."""
    return [(one.queue, one.is_blocked) for one in effects if type(one) is QueueBlocked]


def kinds(effects: Sequence[object]) -> list[OutcomeKind]:
    return [one.kind for one in effects if type(one) is PublishDone for _ in range(one.count)]


def full(count: int = 10, **values: object) -> tuple[Rig, int]:
    """Return a rig whose queue has as many messages as it takes, and a producer."""
    rig = Rig()
    declare(rig, "q", overflow=BLOCK, **{"messages_max": count, **values})
    producer = rig.producer()
    effects = rig.do(rig.publish(producer, *[b"%d" % number for number in range(count)]))
    assert (told(effects), rig.queue().waiting) == ([("q", True)], count)
    return rig, producer


def test_what_comes_on_credit_is_stored() -> None:
    """The queue is above its maximum then; it says once that it is full."""
    rig, producer = full(2)
    effects = rig.do(rig.publish(producer, b"2", b"3"))
    assert (told(effects), kinds(effects)) == ([], [OutcomeKind.ACCEPTED] * 2)
    assert bodies_of(again(rig), "q") == [b"0", b"1", b"2", b"3"]


def test_it_says_so_before_the_outcome_of_the_message_that_fills_it() -> None:
    """So the link gives no credit for that message."""
    rig = Rig()
    declare(rig, "q", overflow=BLOCK, messages_max=1)
    producer = rig.producer()
    assert told(rig.step(rig.publish(producer, b"0"))) == [("q", True)]
    assert kinds(rig.completed()) == [OutcomeKind.ACCEPTED]


def test_it_is_open_again_at_four_fifths() -> None:
    """When consumers take messages; what they return may fill it again."""
    rig, _producer = full(10)
    consumer = rig.consumer(credit=1)
    assert told(rig.do()) == []
    rig.loop.set_credit(consumer, 1)
    assert told(rig.do()) == [("q", False)]
    rig.loop.set_credit(consumer, 0)
    words = pack_words(list(rig.queue().held_by(consumer)))
    assert told(rig.do(Settle(consumer, words, RELEASED))) == [("q", True)]


@pytest.mark.parametrize("how", ["purge", "accept", "expire", "move", "raise", "policy", "delete", "reset"])
def test_what_ends_it(how: str) -> None:
    """Everything that makes room, and the end of the queue."""
    values = {"message_ttl_ms": 1000} if how == "expire" else {}
    rig, _producer = full(10, **values)
    if how == "purge":
        effects = rig.do(PurgeQueue("key", "q"))
    elif how == "accept":
        consumer = rig.consumer(credit=5)
        effects = rig.do()
        effects += rig.do(Settle(consumer, pack_words(list(rig.queue().held_by(consumer))), ACCEPTED))
    elif how == "expire":
        rig.now_us += 2_000_000
        effects = rig.do()
        wait(rig, 1)
    elif how == "move":
        declare(rig, "other")
        offsets = [word >> 16 for word in rig.queue().ready][:5]
        effects = rig.do(MoveMessages("key", "q", offsets, "other", MoveReason.MOVED))
    elif how == "raise":
        effects = rig.do(UpdateQueue("key", "q", lambda _state: {}, {"messages_max": 20}))
    elif how == "policy":
        effects = rig.do(UpdateQueue("key", "q", lambda _state: {}, {"overflow": "reject"}))
    else:
        effects = rig.do(DeleteQueue("key", "q") if how == "delete" else ResetHost("key"))
    assert told(effects) == [("q", False)]


def test_another_queue_of_the_name_is_another_one() -> None:
    """It is open until it is full itself."""
    rig, _producer = full(2)
    assert told(rig.do(DeleteQueue("key", "q"))) == [("q", False)]
    declare(rig, "q", overflow=BLOCK, messages_max=1)
    assert told(rig.do(rig.publish(rig.producer(), b"0"))) == [("q", True)]


def test_a_start_finds_it_again() -> None:
    """Before it answers the attach of a producer."""
    rig, _producer = full(2)
    rig = again(rig)
    assert told(rig.step(AttachProducer("key", "q", "container", "link"))) == [("q", True)]


def test_bytes_count_too() -> None:
    """A message that is larger than the maximum is refused, those beside it are not."""
    rig = Rig()
    declare(rig, "q", overflow=BLOCK, bytes_max=1000)
    producer = rig.producer()
    effects = rig.do(rig.publish(producer, bytes(900)))
    assert told(effects) == []
    effects = rig.do(rig.publish(producer, bytes(200), bytes(1100), bytes(1000)))
    assert told(effects) == [("q", True)]
    assert sorted(kinds(effects)) == [OutcomeKind.ACCEPTED, OutcomeKind.ACCEPTED, OutcomeKind.REJECTED]
    assert rig.queue().waiting_size >= 2100


def test_elsewhere_it_rejects() -> None:
    """On links to a muxer, also to the one that each queue is reached through, and in transactions."""
    rig, producer = full(2)
    rig.do(DeclareMuxer("key", "all", MuxerKind.SIMPLE), AttachMember("key", "all", "q"))
    for address in ("/muxers/all", "/muxers/QUEUE/q", "/muxers/%51UEUE/q"):
        (ready,) = rig.do(AttachProducer("key", address, "container", "link"))
        assert (ready.queue, kinds(rig.do(rig.publish(ready.producer, b"2")))) == ("", [OutcomeKind.REJECTED])
    transaction = Transaction(b"t")
    rig.do(BeginTransaction(transaction))
    command = rig.publish(producer, b"3")
    command.transaction = transaction
    assert kinds(rig.do(command)) == [OutcomeKind.REJECTED]
    assert rig.queue().waiting == 2


_CREDIT = 4


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    messages_max=st.integers(1, 12),
    steps=st.lists(
        st.tuples(st.sampled_from(["send", "send", "send", "take", "back", "purge", "raise"]), st.integers(1, 6)),
        max_size=25,
    ),
    links=st.integers(1, 3),
)
def test_no_more_than_the_credit_is_stored_beyond(messages_max: int, steps: list[tuple[str, int]], links: int) -> None:
    """Nothing is refused, and a queue is never further above its maximum than by the credit that links had then."""
    rig = Rig()
    declare(rig, "q", overflow=BLOCK, messages_max=messages_max)
    producers = [rig.producer() for _ in range(links)]
    consumer = rig.consumer()
    credit = dict.fromkeys(producers, _CREDIT)
    is_blocked, returned = False, 0
    for number, (kind, count) in enumerate(steps):
        queue = rig.queue()
        words = list(queue.held_by(consumer))[:count]
        effects: list[object] = []
        if kind == "send":
            producer = producers[number % links]
            some = min(count, credit[producer])
            if some:
                effects += rig.do(rig.publish(producer, *[b"m"] * some))
                credit[producer] -= some
                assert kinds(effects) == [OutcomeKind.ACCEPTED] * some
        elif kind == "take":
            rig.loop.set_credit(consumer, count)
            effects += rig.do()
            rig.loop.set_credit(consumer, 0)
        elif kind == "back" and words:
            effects += rig.do(Settle(consumer, pack_words(words), RELEASED))
            returned += len(words)
        elif kind == "purge":
            effects += rig.do(PurgeQueue("key", "q"))
        elif kind == "raise":
            messages_max += 1
            effects += rig.do(UpdateQueue("key", "q", lambda _state: {}, {"messages_max": messages_max}))
        is_blocked = ([is_blocked] + [one for _, one in told(effects)])[-1]
        waiting = rig.queue().waiting
        assert is_blocked is (waiting >= messages_max if not is_blocked else 10 * waiting > 8 * messages_max)
        assert waiting - messages_max <= links * _CREDIT + returned
        if not is_blocked:
            credit = dict.fromkeys(producers, _CREDIT)
