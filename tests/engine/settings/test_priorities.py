"""Priorities: the highest first, within a priority by arrival; what comes back goes before its own priority only."""

import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ambermq.engine.commands import Publish, PurgeQueue, Settle, UpdateQueue
from ambermq.engine.entries.entry_word import make_words, pack_words
from ambermq.engine.entries.outcome import ACCEPTED, MODIFIED_FAILED, RELEASED, Outcome, OutcomeKind
from ambermq.engine.events import Prioritized, Published, Scheduled, Timed
from ambermq.engine.model.queue import Queue, new_queue
from ambermq.engine.settings.queue_settings import DEAD_LETTER, DROP_HEAD, Settings, new_settings
from tests.engine.decide.messages.test_dead_letters import again, bodies_of, declare, rejected
from tests.engine.decide.messages.test_expiry import wait
from tests.engine.rig import Rig, delivered
from tests.log.simulated import SimulatedStorage
from tests.model.history import words_on

SECOND = 1_000_000


def send(rig: Rig, producer: int, priority: int, *bodies: bytes, **values: int) -> None:
    """Publish messages of one priority."""
    command = Publish("link", producer, 0, list(bodies), [0] * len(bodies), sum(map(len, bodies)), priority=priority)
    for name, value in values.items():
        setattr(command, name, value)
    rig.do(command)


def some(rig: Rig, *priorities: int) -> None:
    """Publish a message of each of these priorities; the body is the priority and the turn."""
    producer = rig.producer()
    for turn, priority in enumerate(priorities):
        send(rig, producer, priority, b"%d.%d" % (priority, turn))


def test_the_highest_comes_first() -> None:
    """Within a priority by arrival, also after a restart."""
    rig = Rig()
    declare(rig, "q", priorities=True)
    some(rig, 4, 9, 0, 4, 9, 5)
    assert [level.priority for level in rig.queue().levels] == [9, 5, 0]
    assert (rig.queue().available, rig.queue().depth) == (6, 6)
    rig = again(rig)
    assert bodies_of(rig, "q") == [b"9.1", b"9.4", b"5.5", b"4.0", b"4.3", b"0.2"]


def test_a_queue_of_an_older_log_has_none() -> None:
    """Until it is updated; then messages that wait already stay in their places."""
    rig = Rig()
    declare(rig, "q")
    some(rig, 4, 9)
    assert not rig.queue().levels
    rig.do(UpdateQueue("key", "q", lambda _state: {}, {"priorities": True}))
    some(rig, 9)
    assert bodies_of(again(rig), "q") == [b"9.0", b"4.0", b"9.1"]


def test_a_queue_that_a_link_creates_has_them() -> None:
    """By its template."""
    rig = Rig()
    rig.producer("new")
    assert rig.queue("new").settings == new_settings("normal")
    assert rig.queue("new").settings.is_first_release
    assert again(rig).queue("new").settings.priorities


@pytest.mark.parametrize("is_back", [False, True])
def test_without_them_there_is_one_order_again(is_back: bool) -> None:
    """Also for a consumer with a selector, which has looked at some messages."""
    rig = Rig()
    declare(rig, "q", priorities=True)
    some(rig, 4, 9, 0, 9)
    if is_back:
        consumer = rig.consumer(credit=1)
        rig.do()
        rig.loop.set_credit(consumer, 0)
        rig.do(Settle(consumer, pack_words(list(rig.queue().held_by(consumer))), RELEASED))
    rig.do(UpdateQueue("key", "q", lambda _state: {}, {"priorities": False}))
    queue = rig.queue()
    assert (queue.levels, queue.available, queue.returned.count) == ((), 4, int(is_back))
    later = [b"4.0", b"9.1", b"0.2", b"9.3"]
    expected = [b"9.1", b"4.0", b"0.2", b"9.3"] if is_back else later
    assert bodies_of(again(rig), "q") == expected


def test_what_comes_back_goes_before_its_priority() -> None:
    """Not before a higher one, and behind a redelivery delay too."""
    rig = Rig()
    declare(rig, "q", priorities=True, redelivery_delay_ms=1000)
    some(rig, 2, 2, 9)
    consumer = rig.consumer(credit=2)
    rig.do()
    words = list(rig.queue().held_by(consumer))
    rig.loop.set_credit(consumer, 0)
    rig.do(Settle(consumer, pack_words(words), MODIFIED_FAILED))
    assert rig.queue().delayed.count == 2
    wait(rig, 2 * SECOND)
    assert [len(level.returned) for level in rig.queue().levels] == [1, 1]
    some(rig, 9)
    assert bodies_of(again(rig), "q") == [b"9.2", b"9.0", b"2.0", b"2.1"]


def test_an_excluded_consumer_gets_the_next_priority() -> None:
    """Undeliverable-here holds in each priority, and blocks no other one."""
    rig = Rig()
    declare(rig, "q", priorities=True)
    some(rig, 9, 9, 4, 1)
    here = Outcome(OutcomeKind.MODIFIED, undeliverable_here=True)
    first = rig.consumer(credit=1)
    rig.do()
    word = list(rig.queue().held_by(first))
    effects = rig.do(Settle(first, pack_words(word), here))
    rig.loop.set_credit(first, 9)
    effects += rig.do()
    assert [body for _, body in delivered(effects)] == [b"9.1", b"4.2", b"1.3"]
    assert bodies_of(rig, "q") == [b"9.0"]


def test_the_lowest_makes_room() -> None:
    """The oldest of the lowest priority first: the ring drops what matters least."""
    rig = Rig()
    declare(rig, "q", priorities=True, messages_max=4, overflow=DROP_HEAD)
    some(rig, 4, 0, 9, 0)
    producer = rig.producer()
    send(rig, producer, 4, b"a")
    send(rig, producer, 9, b"b", b"c")
    assert rig.queue().depth == 4
    assert bodies_of(again(rig), "q") == [b"9.2", b"b", b"c", b"a"]


def test_the_lowest_become_dead_letters_and_keep_their_priority() -> None:
    """By length or by a rejection: on the target they wait in their priority."""
    rig = Rig()
    declare(rig, "dlq", priorities=True)
    declare(rig, "q", priorities=True, messages_max=2, overflow=DEAD_LETTER, dead_letter="/queues/dlq")
    producer = rig.producer()
    for priority in (5, 1, 9):
        send(rig, producer, priority, b"%d" % priority)
    assert [level.priority for level in rig.queue("dlq").levels] == [1]
    rejected(rig, "q", b"4")
    rig.do()
    dead = bodies_of(again(rig), "dlq")
    assert sorted(dead) == dead[::-1]
    assert b"9" in dead


def test_a_scheduled_message_comes_into_its_priority() -> None:
    """At its time, before those that wait with a lower one; its time to live stays."""
    rig = Rig()
    declare(rig, "q", priorities=True)
    producer = rig.producer()
    send(rig, producer, 9, b"late", delay_ms=1000, ttl_ms=60_000)
    send(rig, producer, 4, b"now")
    assert rig.queue().available == 1
    rig = again(rig)
    wait(rig, 2 * SECOND)
    assert [level.priority for level in rig.queue().levels] == [9]
    assert rig.queue().expiries.count == 1
    assert bodies_of(rig, "q") == [b"late", b"now"]


def test_what_is_about_a_message_is_in_its_batch() -> None:
    """Its priority, time to live and due time: a kill leaves all or none."""
    storage = SimulatedStorage(random.Random(1))
    rig = Rig(storage)
    declare(rig, "q", priorities=True)
    send(rig, rig.producer(), 7, b"a", b"b", delay_ms=1000, ttl_ms=5000)
    from ambermq.engine.events.registry import NUMBERS

    wanted = [NUMBERS[kind] for kind in (Published, Published, Timed, Scheduled, Prioritized)]
    assert any(batch[-5:] == wanted for batch in rig.batches())


def test_a_purge_takes_every_priority() -> None:
    """All of them at once, or those below an offset."""
    rig = Rig()
    declare(rig, "q", priorities=True)
    some(rig, 4, 9, 0)
    rig.do(PurgeQueue("key", "q"))
    assert (rig.queue().depth, rig.queue().levels, len(rig.queue().entries)) == (0, (), 0)
    some(rig, 9, 1)
    first = min(word >> 16 for word in words_on(rig.queue()))
    purged = rig.queue().purge(first + 1)
    assert (purged.available, [level.priority for level in purged.levels]) == (1, [1])


class _Model:
    """What a queue with priorities is: a list, searched each time."""

    def __init__(self) -> None:
        self.waiting: list[tuple[int, bool, int]] = []
        """Priority, whether it is new, word."""
        self.held: dict[int, int] = {}
        """Priority by word."""

    def next(self) -> tuple[int, bool, int]:
        return min(self.waiting, key=lambda one: (-one[0], one[1], one[2]))


@given(st.randoms(use_true_random=False), st.integers(1, 60))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_any_mix_is_served_in_the_order_of_the_model(rng: random.Random, steps: int) -> None:
    """Published, acquired, given back, accepted: the first message is that of the model."""
    model, queue, offset = _Model(), new_queue(1, "q", Settings(priorities=True)), 10
    for _ in range(steps):
        step = rng.randrange(4)
        if step == 0:
            count, priority = rng.randint(1, 4), rng.choice((0, 4, 4, 7, 9))
            words = make_words(offset, [5] * count)
            queue = queue.push(words, 5 * count, 0)
            if priority != 4:
                queue = queue.prioritize(offset, count, priority)
            model.waiting += [(priority, True, word) for word in memoryview(words).cast("Q")]
            offset += count + 1
        elif step == 1 and model.waiting:
            one = model.next()
            assert _first(queue) == one[2]
            queue = queue.acquire((5,), pack_words([one[2]]))
            model.waiting.remove(one)
            model.held[one[2]] = one[0]
        elif model.held:
            word = rng.choice(sorted(model.held))
            outcome = rng.choice((ACCEPTED, RELEASED, MODIFIED_FAILED))
            queue = queue.settle(5, pack_words([word]), outcome)
            priority = model.held.pop(word)
            if outcome is not ACCEPTED:
                model.waiting.append((priority, False, word))
        assert queue.available == queue.waiting == len(model.waiting)
        assert sorted(words_on(queue)) == sorted([*model.held, *[word for _, _, word in model.waiting]])
        assert all(level.ready or level.returned for level in queue.levels)
        assert queue.size == 5 * queue.depth
    served = []
    while model.waiting:
        one = model.next()
        model.waiting.remove(one)
        served.append(one[2])
    assert [word for words in queue.available_lists for word in words] == served


def _first(queue: Queue) -> int:
    return next(word for words in queue.available_lists for word in words)
