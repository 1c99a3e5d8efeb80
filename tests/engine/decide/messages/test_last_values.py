"""Last values: of each key at most one message waits, the newest; nothing else is lost."""

import random
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ambermq.engine.commands import (
    AttachMember,
    BeginTransaction,
    DeclareMuxer,
    DetachConsumer,
    Discharge,
    MoveMessages,
    Publish,
    PurgeQueue,
    Settle,
    Transaction,
    UpdateQueue,
)
from ambermq.engine.decide.messages.last_values import keys_for
from ambermq.engine.effects import Answered, Effect, PublishDone, RefusedCommand
from ambermq.engine.entries.entry_word import pack_words
from ambermq.engine.entries.outcome import ACCEPTED, MODIFIED_FAILED, REJECTED, RELEASED, OutcomeKind
from ambermq.engine.events import Keyed, Published
from ambermq.engine.events.registry import NUMBERS
from ambermq.engine.model.muxer import MuxerKind
from ambermq.engine.model.queue import Queue
from ambermq.engine.model.queue_parts.last_values import NO_KEY
from ambermq.engine.selectors.fields import ABSENT
from ambermq.engine.settings.queue_settings import DEAD_LETTER, DROP_HEAD
from ambermq.log.buffer import Buffer
from tests.engine.decide.messages.test_dead_letters import declare
from tests.engine.decide.messages.test_expiry import wait
from tests.engine.rig import Rig, delivered
from tests.log.simulated import SimulatedStorage

SECOND = 1_000_000


class _KeyField:
    """The field `key` of a message `key:rest`; a message without a colon has none."""

    def __init__(self, body: Buffer) -> None:
        self._body = bytes(body)

    def get(self, name: str) -> object:
        key, colon, _ = self._body.partition(b":")
        return key.decode() if colon and name == "key" else ABSENT


def fields_of(body: Buffer, _added: object = (), /) -> _KeyField:
    """Return the fields of a message."""
    return _KeyField(body)


def new_rig(storage: SimulatedStorage | None = None, now_us: int = 1_000_000) -> Rig:
    """Return a broker that reads keys."""
    return Rig(storage, fields_of=fields_of, now_us=now_us)


def next_life(rig: Rig) -> Rig:
    """Write what waits, and return the life after a SIGKILL; it has folded what this one has lived."""
    rig.loop.make_due()
    rig.do()
    live = rig.loop.state
    rig.kill()
    later = new_rig(rig.storage, rig.now_us)
    assert later.recovered == live
    return later


def lasting(**values: object) -> Rig:
    """Return a broker with a last-value queue."""
    rig = new_rig()
    declare(rig, "q", last_value="key", **values)
    return rig


def send(rig: Rig, *bodies: bytes, name: str = "q", **values: object) -> list[Effect]:
    """Publish a run of messages."""
    producer = rig.producer(name)
    command = Publish("link", producer, 0, list(bodies), [0] * len(bodies), sum(map(len, bodies)))
    for field, value in values.items():
        setattr(command, field, value)
    return rig.do(command)


def hold(rig: Rig, count: int) -> tuple[int, list[int]]:
    """Return a consumer with the first messages, which takes no more."""
    consumer = rig.consumer(credit=count)
    rig.do()
    rig.loop.set_credit(consumer, 0)
    return consumer, list(rig.queue().held_by(consumer))


def settle(rig: Rig, consumer: int, words: list[int], outcome: object) -> None:
    """Settle deliveries at once."""
    rig.do(Settle(consumer, pack_words(words), outcome))  # type: ignore[arg-type]
    rig.loop.make_due()
    rig.do()


def bodies_of(rig: Rig, name: str) -> list[bytes]:
    """Return the messages that a consumer of a queue gets, in order, also those that are read from the disk."""
    effects = rig.do()
    consumer = rig.consumer(name, credit=1000)
    effects += rig.do()
    for _ in range(10):
        effects += rig.completed() + rig.do()
    return [body for one, body in delivered(effects) if one == consumer]


def outcomes(effects: list[Effect]) -> list[OutcomeKind]:
    """Return the outcomes of messages, one by one."""
    done = sorted((one for one in effects if type(one) is PublishDone), key=lambda one: one.first_id)
    return [one.kind for one in done for _ in range(one.count)]


def check(queue: Queue) -> None:
    """The index has what the queue has."""
    values = queue.keyed
    if values is None:
        return
    held = {word for words in queue.acquired.values() for word in words}
    waiting = {word for words in queue.waiting_lists for word in words} - set(queue.aside)
    keys = {int.from_bytes(word, "little"): key for word, key in values.keys.items()}
    newest = {key: int.from_bytes(word, "little") for key, word in values.newest.items()}
    assert set(keys) <= held | waiting
    assert set(values.replaced) <= held
    assert newest == {key: word for word, key in keys.items() if not queue.scheduled.holds(word)}


def test_a_newer_message_takes_the_tail() -> None:
    """The older one ends, in a run or in another; a message without a key is an ordinary one."""
    rig = lasting()
    send(rig, b"a:1", b"plain", b"b:1", b"a:2")
    send(rig, b"plain", b"b:2")
    assert (rig.queue().available, rig.queue().counters.discarded) == (4, 2)
    check(rig.queue())
    assert bodies_of(next_life(rig), "q") == [b"plain", b"a:2", b"plain", b"b:2"]


def test_the_key_is_in_the_batch_of_its_message() -> None:
    """A kill leaves both or none, also for a message that is stored in pieces."""
    rig = lasting()
    send(rig, b"a:1", b"a:2", ttl_ms=9000)
    wanted = [NUMBERS[Published], NUMBERS[Keyed]]
    types = [one for batch in rig.batches() for one in batch if one in wanted]
    assert types == [NUMBERS[Published], NUMBERS[Published], NUMBERS[Keyed]]


def test_a_message_that_a_consumer_holds_ends_when_it_comes_back() -> None:
    """Released, failed, delayed or lost: it is not offered again, and is no dead letter."""
    rig = lasting(dead_letter="/queues/dlq", delivery_count_max=1, redelivery_delay_ms=10)
    for outcome in (RELEASED, MODIFIED_FAILED):
        send(rig, b"a:1")
        consumer, words = hold(rig, 1)
        send(rig, b"a:2")
        assert (rig.queue().depth, list(rig.queue().keyed.replaced)) == (2, words)  # type: ignore[union-attr]
        settle(rig, consumer, words, outcome)
        assert (rig.queue().depth, rig.queue().available, rig.queue().delayed.count) == (1, 1, 0)
        check(rig.queue())
    consumer, _ = hold(rig, 1)
    send(rig, b"a:3")
    rig.do(DetachConsumer(consumer))
    assert rig.queue("dlq").depth == 0
    assert bodies_of(next_life(rig), "q") == [b"a:3"]


def test_accepted_and_rejected_are_what_they_are() -> None:
    """Also for a message that a newer one has replaced: a rejected one is a dead letter."""
    rig = lasting(dead_letter="/queues/dlq")
    send(rig, b"a:1", b"b:1")
    consumer, words = hold(rig, 2)
    send(rig, b"a:2", b"b:2")
    settle(rig, consumer, words[:1], ACCEPTED)
    settle(rig, consumer, words[1:], REJECTED)
    check(rig.queue())
    assert bodies_of(rig, "dlq") == [b"b:1"]
    assert bodies_of(next_life(rig), "q") == [b"a:2", b"b:2"]


def test_what_a_stopped_broker_held_ends_at_the_start() -> None:
    """Before any consumer comes."""
    rig = lasting()
    send(rig, b"a:1", b"b:1")
    hold(rig, 2)
    send(rig, b"a:2")
    rig = next_life(rig)
    assert (rig.queue().available, rig.queue().keyed.replaced.count) == (2, 0)  # type: ignore[union-attr]
    assert bodies_of(next_life(rig), "q") == [b"b:1", b"a:2"]


def test_a_full_queue_takes_what_replaces() -> None:
    """By messages and by bytes; other messages are refused or make room as before."""
    rig = lasting(messages_max=2)
    assert outcomes(send(rig, b"a:1", b"b:1", b"a:2", b"c:1", b"a:3", b"b:2")) == [
        *[OutcomeKind.ACCEPTED] * 3,
        OutcomeKind.REJECTED,
        *[OutcomeKind.ACCEPTED] * 2,
    ]
    assert bodies_of(next_life(rig), "q") == [b"a:3", b"b:2"]
    rig = lasting(bytes_max=8)
    assert outcomes(send(rig, b"a:10", b"b:10", b"a:2", b"b:201", b"a:2001")) == [
        *[OutcomeKind.ACCEPTED] * 4,
        OutcomeKind.REJECTED,
    ]
    rig = lasting(messages_max=2, overflow=DROP_HEAD)
    send(rig, b"a:1", b"b:1")
    send(rig, b"b:2")
    assert rig.queue().depth == 2
    send(rig, b"c:1")
    assert bodies_of(next_life(rig), "q") == [b"b:2", b"c:1"]


def test_a_held_one_makes_no_room() -> None:
    """It does not count either."""
    rig = lasting(messages_max=1)
    send(rig, b"a:1")
    hold(rig, 1)
    assert outcomes(send(rig, b"b:1", b"a:2")) == [OutcomeKind.ACCEPTED, OutcomeKind.REJECTED]


def test_a_full_queue_refuses_a_scheduled_message() -> None:
    """It replaces none yet, so it would take the queue above its maximum, and the next one again."""
    rig = lasting(messages_max=1)
    send(rig, b"a:1")
    assert outcomes(send(rig, b"a:late", delay_ms=1000)) == [OutcomeKind.REJECTED]
    assert rig.queue().waiting == 1


def test_a_scheduled_message_replaces_at_its_time() -> None:
    """Until then it replaces none, and none replaces it."""
    rig = lasting()
    send(rig, b"a:late", delay_ms=1000)
    send(rig, b"a:later", delay_ms=2000)
    send(rig, b"a:now")
    send(rig, b"a:newer")
    assert (rig.queue().available, rig.queue().scheduled.count) == (1, 2)
    check(rig.queue())
    rig = next_life(rig)
    wait(rig, SECOND + 20_000)
    assert (rig.queue().available, rig.queue().scheduled.count) == (1, 1)
    check(rig.queue())
    wait(rig, SECOND)
    assert bodies_of(next_life(rig), "q") == [b"a:later"]


def test_a_scheduled_message_needs_room() -> None:
    """It replaces none when it comes, so a full queue refuses it; one for the past is not scheduled."""
    rig = lasting(messages_max=1)
    send(rig, b"a:1")
    assert outcomes(send(rig, b"a:2", delay_ms=1000)) == [OutcomeKind.REJECTED]
    assert outcomes(send(rig, b"a:3", time_ms=1)) == [OutcomeKind.ACCEPTED]
    assert (rig.queue().depth, bodies_of(rig, "q")) == (1, [b"a:3"])


def test_a_fan_out_has_a_key_for_each_queue() -> None:
    """By the field of each; an ordinary queue keeps all."""
    rig = lasting()
    declare(rig, "other", last_value="nothing")
    declare(rig, "all")
    rig.do(DeclareMuxer("key", "fan", MuxerKind.SIMPLE))
    for name in ("q", "other", "all"):
        rig.do(AttachMember("key", "fan", name, None))
    send(rig, b"a:1", b"a:2", b"b:1", name="/muxers/fan")
    assert [rig.queue(name).available for name in ("q", "other", "all")] == [2, 3, 3]
    assert rig.queue("other").keyed is None
    assert bodies_of(next_life(rig), "q") == [b"a:2", b"b:1"]


def test_moved_messages_and_dead_letters_have_keys() -> None:
    """By the field of the queue that they come to, read from the message again."""
    rig = lasting()
    declare(rig, "from")
    declare(rig, "short", messages_max=1, overflow=DEAD_LETTER, dead_letter="/queues/q")
    send(rig, b"a:1", b"b:1")
    send(rig, b"a:2", b"plain", b"a:3", name="from")
    offsets = [word >> 16 for word in rig.queue("from").ready]
    rig.forget_pages()
    (answer,) = rig.do(MoveMessages("key", "from", offsets, "/queues/q"))
    assert type(answer) is Answered
    assert answer.value["moved"] == 3  # type: ignore[index]
    check(rig.queue())
    send(rig, b"b:2", name="short")
    send(rig, b"b:3", name="short")
    check(rig.queue())
    assert rig.queue().available == 3
    assert bodies_of(next_life(rig), "q") == [b"plain", b"a:3", b"b:2"]


def test_a_full_target_of_dead_letters_refuses_at_once() -> None:
    """No message goes there, so none is read for its key, and the publish ends."""
    rig = lasting(messages_max=1)
    send(rig, b"a:1")
    declare(rig, "short", messages_max=1, overflow=DEAD_LETTER, dead_letter="/queues/q")
    send(rig, b"b:1", name="short")
    rig.loop.submit(rig.publish(rig.producer("short"), b"b:2"))
    effects = [effect for _ in range(5) for effect in rig.step() + rig.completed()]
    assert outcomes(effects) == [OutcomeKind.REJECTED]


def test_dead_letters_that_are_on_the_disk_are_read_for_their_keys() -> None:
    """One of a full queue makes its sender wait; another one is set aside, and tried again."""
    rig = lasting()
    declare(rig, "short", messages_max=4, overflow=DEAD_LETTER, dead_letter="/queues/q")
    declare(rig, "brief", message_ttl_ms=1000, dead_letter="/queues/q")
    send(rig, *[b"a:%0200d" % number for number in range(4)], name="short")
    send(rig, b"b:1", name="brief")
    rig = next_life(rig)
    rig.forget_pages()
    assert outcomes(send(rig, b"a:5", b"a:6", name="short")) == [OutcomeKind.ACCEPTED] * 2
    assert (rig.queue("short").available, rig.queue().available) == (4, 1)
    rig = next_life(rig)
    rig.forget_pages()
    wait(rig, 3 * SECOND)
    wait(rig, 70 * SECOND)
    assert (rig.queue("brief").depth, rig.queue().available) == (0, 2)
    check(rig.queue())
    assert bodies_of(next_life(rig), "q") == [b"a:%0200d" % 1, b"b:1"]


def test_a_transaction_replaces_at_its_commit() -> None:
    """Not at the post, and not at all after a rollback."""
    rig = lasting()
    send(rig, b"a:1", b"b:1")
    for fails in (True, False):
        transaction = Transaction(b"1")
        rig.do(BeginTransaction(transaction))
        send(rig, b"a:2", transaction=transaction)
        send(rig, b"plain", b"a:3", transaction=transaction)
        assert rig.queue().available == 2
        answers = rig.do(Discharge("key", transaction, fails))
        assert not [one for one in answers if type(one) is RefusedCommand]
        assert rig.queue().available == (2 if fails else 3)
    check(rig.queue())
    assert bodies_of(next_life(rig), "q") == [b"b:1", b"plain", b"a:3"]


def test_a_purge_forgets_the_keys() -> None:
    """Those that are held or scheduled stay."""
    rig = lasting()
    send(rig, b"a:1", b"b:1", b"c:1")
    hold(rig, 1)
    send(rig, b"a:9", delay_ms=1000)
    rig.do(PurgeQueue("key", "q"))
    check(rig.queue())
    assert rig.queue().keyed.keys.count == 2  # type: ignore[union-attr]
    send(rig, b"a:2", b"b:2")
    purged = rig.queue().purge(next(iter(rig.queue().ready)) // 65536 + 1)
    check(purged)
    assert bodies_of(next_life(rig), "q") == [b"a:2", b"b:2"]


def test_an_expired_message_is_none_that_is_replaced() -> None:
    """It is a dead letter, and its key is free."""
    rig = lasting(message_ttl_ms=1000, dead_letter="/queues/dlq")
    send(rig, b"a:1")
    wait(rig, 3 * SECOND)
    assert rig.queue().keyed is None
    send(rig, b"a:2")
    assert (bodies_of(rig, "dlq"), bodies_of(rig, "q")) == ([b"a:1"], [b"a:2"])


def test_it_is_set_at_the_declaration_alone() -> None:
    """The refusal of an update says what to do."""
    rig = lasting()
    (refused,) = rig.do(UpdateQueue("key", "q", lambda _state: {}, {"last_value": "other"}))
    assert type(refused) is RefusedCommand
    assert refused.description == (
        "last_value of queue 'q' is 'key', which does not change, but the request asks for 'other': "
        "declare another queue, and move to it"
    )


class _One:
    def __init__(self, value: object) -> None:
        self._value = value

    def get(self, name: str) -> object:
        del name
        return self._value


def _key(value: object) -> bytes:
    keys = keys_for({"f": (1,)}, [_One(value)])
    return keys[0][1] if keys else NO_KEY


@pytest.mark.parametrize("alike", [(1, 1.0), ("a", "a"), (0, -0.0), (1 << 70, float(1 << 70))])
def test_values_that_are_one_key(alike: tuple[object, object]) -> None:
    """Numbers by value."""
    assert _key(alike[0]) == _key(alike[1]) != NO_KEY


def test_values_that_are_different_keys() -> None:
    """By type and value; what attachments cannot compare is no key."""
    values = ["1", 1, b"1", True, False, 0, 1.5, "true", "", b"", "a", "A", float("inf"), float("-inf")]
    assert len({_key(value) for value in values}) == len(values)
    nothing: list[object] = [ABSENT, None, float("nan"), [1], {"a": 1}, UUID(int=1)]
    assert {_key(value) for value in nothing} == {NO_KEY}


@given(st.randoms(use_true_random=False), st.integers(5, 40))
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_any_mix_keeps_the_newest_of_each_key(rng: random.Random, steps: int) -> None:
    """At most one message of a key waits, the newest; no other is lost; and the fold is the live state."""
    law = _Law(rng)
    for _ in range(steps):
        rng.choice((law.publish, law.publish, law.publish, law.take, law.settle, law.lose, law.later, law.restart))()
        law.check()
    wait(law.rig, 100 * SECOND)
    law.restart()
    law.check()


class _Law:
    """A broker, and all that was sent to it."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.rig = lasting(priorities=True, redelivery_delay_ms=rng.choice((0, 500)))
        self.sent: list[bytes] = []
        self.gone: set[bytes] = set()

    def publish(self) -> None:
        keys = [self.rng.choice((b"a:", b"b:", b"c:", b"")) for _ in range(self.rng.randint(1, 5))]
        bodies = [b"%s%d" % (key, len(self.sent) + turn) for turn, key in enumerate(keys)]
        self.sent += bodies
        values = {"priority": self.rng.choice((4, 4, 9)), "delay_ms": self.rng.choice((0, 0, 0, 700))}
        assert set(outcomes(send(self.rig, *bodies, **values))) == {OutcomeKind.ACCEPTED}

    def take(self) -> None:
        hold(self.rig, self.rng.randint(1, 4))

    def settle(self) -> None:
        for consumer, words in self.rig.queue().acquired.items():
            outcome = self.rng.choice((ACCEPTED, RELEASED, MODIFIED_FAILED))
            if outcome is ACCEPTED:
                self.gone.update(map(self.body_of, words))
            settle(self.rig, consumer, list(words), outcome)
            return

    def lose(self) -> None:
        for consumer in self.rig.queue().acquired:
            self.rig.do(DetachConsumer(consumer))
            return

    def later(self) -> None:
        wait(self.rig, 600_000)

    def restart(self) -> None:
        self.rig = next_life(self.rig)

    def body_of(self, word: int) -> bytes:
        entry = self.rig.queue().entries.get(word >> 16)
        found = self.rig.loop.messages([word], [entry])
        while found is None:
            self.rig.completed()
            found = self.rig.loop.messages([word], [entry])
        assert found[0] is not None
        return bytes(found[0])

    def check(self) -> None:
        queue = self.rig.queue()
        check(queue)
        lists = [*queue.available_lists, queue.delayed]
        waiting = [self.body_of(word) for words in sorted(map(list, lists)) for word in words]
        held = [self.body_of(word) for words in queue.acquired.values() for word in words]
        scheduled = [self.body_of(word) for word in queue.scheduled]
        keys = [body.split(b":")[0] for body in waiting if b":" in body]
        assert len(keys) == len(set(keys))
        there = [*waiting, *held, *scheduled]
        assert len(there) == len(set(there))
        left = set(self.sent) - set(there) - self.gone
        assert all(b":" in body for body in left), "a message without a key is never replaced"
        words = {self.body_of(word): word for word in self._words(queue)}
        for body in waiting:
            key = body.split(b":")[0] + b":"
            older = [one for one in held if b":" in body and one.startswith(key)]
            assert all(words[one] < words[body] for one in older), "the newest one waits"
        assert {body.split(b":")[0] for body in left} <= {
            body.split(b":")[0] for body in [*waiting, *held, *self.gone] if b":" in body
        }, "the last one of a key is not replaced"

    @staticmethod
    def _words(queue: Queue) -> list[int]:
        lists = [*queue.waiting_lists, *queue.acquired.values()]
        return [word for words in lists for word in words]
