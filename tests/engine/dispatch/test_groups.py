"""Groups: one consumer at a time has a group, in order; others pass by; and when a consumer loses it."""

from collections.abc import Sequence

import pytest

from ambermq.engine.commands import (
    AttachConsumer,
    BeginTransaction,
    DetachConsumer,
    Discharge,
    EndSuspended,
    Publish,
    PurgeQueue,
    Settle,
    Suspension,
    Transaction,
    UpdateQueue,
)
from ambermq.engine.config import EngineConfig
from ambermq.engine.effects import ConsumerReady, Effect
from ambermq.engine.entries.entry_word import pack_words
from ambermq.engine.entries.outcome import ACCEPTED, MODIFIED_FAILED, RELEASED, Outcome, OutcomeKind
from ambermq.engine.model.suspended_link import UNSETTLED_STATE, Keeping
from ambermq.engine.settings.queue_settings import DEAD_LETTER, new_settings
from ambermq.protocol.amqp10.message.group_code import group_code
from tests.engine.decide.messages.test_dead_letters import again, declare
from tests.engine.decide.messages.test_expiry import wait
from tests.engine.rig import Rig, delivered

SECOND = 1_000_000
HERE = Outcome(OutcomeKind.MODIFIED, undeliverable_here=True)


def code_of(body: bytes) -> int:
    """Return the group of a body: its first letter; none for `-`; `!` at its end closes it."""
    return 0 if body[:1] == b"-" else group_code(body[:1].decode(), is_last=body.endswith(b"!"))


def run_of(producer: int, *bodies: bytes, **values: object) -> Publish:
    """Return messages whose first letters are their groups."""
    codes = [code_of(body) for body in bodies]
    command = Publish("link", producer, 0, list(bodies), [0] * len(bodies), sum(map(len, bodies)))
    command.groups = codes if any(codes) else []
    for name, value in values.items():
        setattr(command, name, value)
    return command


def send(rig: Rig, *bodies: bytes, name: str = "q", **values: int) -> list[Effect]:
    """Publish messages whose first letters are their groups."""
    return rig.do(run_of(rig.producer(name), *bodies, **values))


def got(effects: Sequence[Effect]) -> dict[int, list[bytes]]:
    """Return what each consumer has got."""
    found: dict[int, list[bytes]] = {}
    for consumer, body in delivered(list(effects)):
        found.setdefault(consumer, []).append(body)
    return found


def words(rig: Rig, consumer: int, name: str = "q") -> list[int]:
    """Return what a consumer holds, in order."""
    return sorted(rig.queue(name).held_by(consumer))


def settle(rig: Rig, consumer: int, outcome: Outcome, *indexes: int) -> list[Effect]:
    """Settle what a consumer holds, all of it or some."""
    held = words(rig, consumer)
    chosen = [held[index] for index in indexes] if indexes else held
    rig.loop.make_due()
    return rig.do(Settle(consumer, pack_words(chosen), outcome))


@pytest.fixture
def rig() -> Rig:
    """Return a broker with a queue that has groups."""
    rig = Rig()
    declare(rig, "q", groups=True)
    return rig


def test_a_group_has_one_consumer(rig: Rig) -> None:
    """Groups are given out in turns; a message without a group goes to anyone."""
    first, second = rig.consumer(credit=100), rig.consumer(credit=100)
    effects = send(rig, b"a1", b"b1", b"a2", b"b2", b"-1", b"c1", b"a3")
    assert got(effects) == {first: [b"a1", b"a2", b"-1", b"a3"], second: [b"b1", b"b2", b"c1"]}


def test_the_messages_of_a_group_wait_and_others_pass_by(rig: Rig) -> None:
    """Without credit of its consumer; with credit they come in order."""
    first, second = rig.consumer(credit=1), rig.consumer(credit=100)
    effects = send(rig, b"a1", b"a2", b"b1", b"a3", b"-1", b"b2")
    assert got(effects) == {first: [b"a1"], second: [b"b1", b"-1", b"b2"]}
    rig.loop.set_credit(first, 1)
    effects = rig.do() + send(rig, b"a4")
    assert got(effects) == {first: [b"a2"]}
    rig.loop.set_credit(first, 9)
    assert got(rig.do()) == {first: [b"a3", b"a4"]}


def test_a_lost_consumer_loses_its_groups(rig: Rig) -> None:
    """What it held comes first to the next one."""
    first, second = rig.consumer(credit=2), rig.consumer(credit=100)
    send(rig, b"a1", b"b1", b"a2", b"a3", b"a4")
    assert got(rig.do(DetachConsumer(first))) == {second: [b"a1", b"a2", b"a3", b"a4"]}


def test_a_group_ends_with_its_last_message(rig: Rig) -> None:
    """Then its next message goes to the next consumer in turn, not before."""
    first, second = rig.consumer(credit=100), rig.consumer(credit=100)
    assert got(send(rig, b"a1", b"a2")) == {first: [b"a1", b"a2"]}
    settle(rig, first, ACCEPTED, 0)
    assert got(send(rig, b"a3")) == {first: [b"a3"]}
    settle(rig, first, ACCEPTED)
    assert not rig.queue().groups
    assert got(send(rig, b"a4")) == {second: [b"a4"]}


def test_the_last_sequence_ends_the_binding(rig: Rig) -> None:
    """The next message of the group may go to another consumer, also if it waits already."""
    first, second = rig.consumer(credit=100), rig.consumer(credit=100)
    assert got(send(rig, b"a1", b"a2!", b"a3")) == {first: [b"a1", b"a2!"], second: [b"a3"]}
    assert got(send(rig, b"a4", b"-1", b"a5!", b"a6")) == {second: [b"a4", b"a5!"], first: [b"-1", b"a6"]}


def test_what_comes_back_goes_to_the_same_consumer(rig: Rig) -> None:
    """In its old place."""
    first, second = rig.consumer(credit=3), rig.consumer(credit=100)
    send(rig, b"a1", b"b1", b"a2", b"a3", b"a4")
    settle(rig, first, RELEASED, 1)
    rig.loop.set_credit(first, 9)
    assert got(rig.do()) == {first: [b"a2", b"a4"]}
    assert second in rig.queue().acquired


def test_a_message_that_excludes_its_consumer_waits(rig: Rig) -> None:
    """Its group goes on; another consumer gets it when the group is free."""
    first, second = rig.consumer(credit=100), rig.consumer(credit=100)
    send(rig, b"a1", b"a2", b"b1")
    assert got(settle(rig, first, HERE, 0)) == {}
    assert got(send(rig, b"a3")) == {first: [b"a3"]}
    assert got(rig.do(DetachConsumer(first))) == {second: [b"a1", b"a2", b"a3"]}


def test_messages_without_a_group_that_exclude_consumers(rig: Rig) -> None:
    """The others get them, whenever they come or have credit, and each once."""
    first = rig.consumer(credit=100)
    send(rig, b"a1", b"-1", b"-2", b"-3")
    assert got(settle(rig, first, HERE, 1, 2, 3)) == {}
    assert got(send(rig, b"a2")) == {first: [b"a2"]}
    second = rig.consumer(credit=2)
    assert got(rig.do()) == {second: [b"-1", b"-2"]}
    assert got(settle(rig, second, HERE, 0)) == {}
    third = rig.consumer(credit=9)
    assert sorted(got(rig.do())[third]) == [b"-1", b"-3"]


@pytest.mark.parametrize("is_lost", [False, True])
def test_a_delay_holds_back_the_rest_of_its_group(is_lost: bool) -> None:
    """Nothing else; also over a restart."""
    rig = Rig()
    declare(rig, "q", groups=True, redelivery_delay_ms=1000)
    first, second = rig.consumer(credit=2), rig.consumer(credit=100)
    send(rig, b"a1", b"b1", b"a2", b"a3")
    if is_lost:
        rig.do(DetachConsumer(first))
    else:
        settle(rig, first, MODIFIED_FAILED, 0)
        rig.loop.set_credit(first, 100)
    assert got(rig.do()) == {}
    assert got(send(rig, b"b2", b"a4")) == {second: [b"b2"]}
    rig.now_us += 2 * SECOND
    owner = second if is_lost else first
    effects = rig.do()
    assert got(effects) == {owner: [b"a1", *([b"a2"] if is_lost else []), b"a3", b"a4"]}


def test_a_delay_is_known_after_a_restart() -> None:
    """The messages behind a delayed one of their group wait."""
    rig = Rig()
    declare(rig, "q", groups=True, redelivery_delay_ms=100_000)
    first = rig.consumer(credit=1)
    send(rig, b"a1", b"a2", b"b1")
    settle(rig, first, MODIFIED_FAILED)
    rig = again(rig)
    consumer = rig.consumer(credit=9)
    assert got(rig.do()) == {consumer: [b"b1"]}
    wait(rig, 200 * SECOND)
    assert [len(rig.queue().held_by(consumer)), rig.queue().available] == [3, 0]


def test_groups_survive_a_restart(rig: Rig) -> None:
    """The group of a message is state, its consumer is not."""
    send(rig, b"a1", b"-1", b"b1", b"a2", b"b2!")
    assert sorted(rig.queue().groups.values()) == [2, 2]
    rig = again(rig)
    assert sorted(rig.queue().groups.values()) == [2, 2]
    first, second = rig.consumer(), rig.consumer()
    for consumer in (first, second):
        rig.loop.set_credit(consumer, 100)
    assert got(rig.do()) == {first: [b"a1", b"b1", b"a2", b"b2!"], second: [b"-1"]}


def test_a_queue_without_the_setting_has_none() -> None:
    """As those of an older log have; then each message goes to the next consumer."""
    rig = Rig()
    declare(rig, "q")
    first, second = rig.consumer(credit=100), rig.consumer(credit=100)
    assert got(send(rig, b"a1", b"a2", b"a3", b"a4")) == {first: [b"a1", b"a3"], second: [b"a2", b"a4"]}
    assert not rig.queue().groups
    assert not rig.queue().entries
    assert new_settings("normal").groups


def test_an_update_ends_and_begins_groups(rig: Rig) -> None:
    """Without groups all that waits is for all; with them the groups of messages hold again."""
    first, second = rig.consumer(credit=1), rig.consumer(credit=1)
    send(rig, b"a1", b"a2", b"b1", b"a3", b"a4", b"a5")
    rig.do(UpdateQueue("key", "q", lambda _state: {}, {"groups": False}))
    rig.loop.set_credit(second, 1)
    assert got(rig.do()) == {second: [b"a2"]}
    rig.do(UpdateQueue("key", "q", lambda _state: {}, {"groups": True}))
    rig.loop.set_credit(first, 2)
    assert got(rig.do()) == {first: [b"a3", b"a4"]}
    again(rig)


def test_a_rebalance_takes_idle_groups() -> None:
    """Those of which nothing is out, when a consumer comes; the others stay until nothing of them is out."""
    rig = Rig()
    declare(rig, "q", groups=True, group_rebalance=True)
    first = rig.consumer(credit=2)
    send(rig, b"a1", b"b1", b"a2", b"b2")
    settle(rig, first, ACCEPTED, 0)
    second = rig.consumer(credit=100)
    assert got(rig.do()) == {second: [b"a2"]}
    assert got(settle(rig, first, ACCEPTED)) == {second: [b"b2"]}


def test_without_a_rebalance_a_new_consumer_gets_new_groups(rig: Rig) -> None:
    """What waits for the others stays theirs."""
    first = rig.consumer(credit=1)
    send(rig, b"a1", b"a2")
    settle(rig, first, ACCEPTED, 0)
    second = rig.consumer(credit=100)
    assert got(rig.do()) == {}
    assert got(send(rig, b"a3", b"b1")) == {second: [b"b1"]}


def test_over_the_maximum_groups_share_bindings() -> None:
    """All messages are delivered, each group in order and to one consumer."""
    rig = Rig(config=EngineConfig(groups_max=2))
    declare(rig, "q", groups=True)
    consumers = [rig.consumer(credit=100) for _ in range(3)]
    names = [bytes([97 + index]) for index in range(20)]
    effects = send(rig, *[name + b"%d" % turn for turn in range(3) for name in names])
    assert len(rig.loop.demand.groups[rig.queue().id].lines) <= 2 + 256
    owners: dict[bytes, set[int]] = {}
    for consumer, bodies in got(effects).items():
        for name in names:
            mine = [body for body in bodies if body[:1] == name]
            assert mine in ([], [name + b"0", name + b"1", name + b"2"])
            if mine:
                owners.setdefault(name, set()).add(consumer)
    assert all(len(one) == 1 for one in owners.values())
    assert owners.keys() == set(names)
    assert len(consumers) == 3


def test_a_group_is_in_order_of_priority(rig: Rig) -> None:
    """And within a priority by arrival."""
    rig.do(UpdateQueue("key", "q", lambda _state: {}, {"priorities": True}))
    first, second = rig.consumer(credit=1), rig.consumer(credit=100)
    send(rig, b"a1")
    send(rig, b"a2", b"b1")
    send(rig, b"a3", b"b2", priority=9)
    send(rig, b"a4", b"-1", priority=1)
    rig.loop.set_credit(first, 100)
    assert got(rig.do()) == {first: [b"a3", b"a2", b"a4"]}
    assert len(words(rig, second)) == 3


def test_what_waited_without_priorities_is_delivered_with_them(rig: Rig) -> None:
    """It keeps its place when a queue gets priorities again."""
    rig.do(UpdateQueue("key", "q", lambda _state: {}, {"priorities": True}))
    consumer = rig.consumer(credit=3)
    send(rig, b"a1", b"b1", b"a2", priority=7)
    rig.do(DetachConsumer(consumer))
    for priorities in (False, True):
        rig.do(UpdateQueue("key", "q", lambda _state: {}, {"priorities": priorities}))
    consumer = rig.consumer(credit=3)
    assert got(rig.do()) == {consumer: [b"a1", b"b1", b"a2"]}


def test_consumers_with_a_higher_priority_get_groups_first(rig: Rig) -> None:
    """While they have credit."""
    low, high = rig.consumer(credit=100), rig.consumer(credit=2)
    rig.loop.demand.wants[high].priority = 5
    effects = send(rig, b"a1", b"b1", b"c1", b"a2")
    assert got(effects) == {high: [b"a1", b"b1"], low: [b"c1"]}
    rig.loop.set_credit(high, 1)
    assert got(rig.do()) == {high: [b"a2"]}


def test_dead_letters_and_due_messages_keep_their_group() -> None:
    """On their new place they are bound again."""
    rig = Rig()
    declare(rig, "dead", groups=True)
    declare(rig, "q", groups=True, dead_letter="/queues/dead", overflow=DEAD_LETTER, messages_max=2)
    send(rig, b"a1", b"a2", b"b1", b"b2")
    assert sorted(rig.queue("dead").groups.values()) == [2]
    send(rig, b"a9", name="dead", delay_ms=1000)
    rig = again(rig)
    wait(rig, 2 * SECOND)
    first, second = rig.consumer("dead"), rig.consumer("dead")
    for consumer in (first, second):
        rig.loop.set_credit(consumer, 100)
    assert got(rig.do()) == {first: [b"a1", b"a2", b"a9"]}
    assert got(send(rig, b"a1")) == {second: [b"b1"]}


def test_large_messages_have_groups() -> None:
    """Each has its own, in the batch of its last piece."""
    rig = Rig(config=EngineConfig(chunk_bytes=100))
    declare(rig, "q", groups=True)
    send(rig, b"a" + bytes(250), b"b" + bytes(250), b"-" + bytes(150))
    rig = again(rig)
    assert sorted(rig.queue().groups.values()) == [1, 1]


def test_settled_deliveries_end_groups(rig: Rig) -> None:
    """A consumer whose deliveries leave settled holds nothing."""
    first, second = rig.consumer(credit=100, settled=True), rig.consumer(credit=100, settled=True)
    assert got(send(rig, b"a1", b"a2")) == {first: [b"a1", b"a2"]}
    assert got(send(rig, b"a3")) == {second: [b"a3"]}
    assert not rig.queue().groups


def test_a_purge_ends_groups(rig: Rig) -> None:
    """What waits in a line is gone; a message that is out keeps its group."""
    first, second = rig.consumer(credit=1), rig.consumer(credit=100)
    send(rig, b"a1", b"b1", b"a2", b"c1", b"a3")
    rig.do(PurgeQueue("key", "q"))
    assert len(rig.queue().groups) == 3
    rig.loop.set_credit(first, 100)
    assert got(send(rig, b"a4", b"d1")) == {first: [b"a4", b"d1"]} or rig.queue().depth
    assert len(rig.queue().entries) == rig.queue().depth
    again(rig)
    assert second


def test_a_dispatch_passes_a_waiting_message_once() -> None:
    """However many messages wait for a consumer without credit, a new one costs the same visits."""
    rig = Rig()
    declare(rig, "q", groups=True)
    first, second = rig.consumer(credit=1), rig.consumer(credit=100)
    send(rig, *[b"a%d" % number for number in range(300)])
    lines = rig.loop.demand.groups[rig.queue().id]
    places = lines.places[4]
    before = places.position
    send(rig, b"b1")
    assert places.position > before
    assert len(lines.parked) == 299
    assert words(rig, second)
    rig.loop.set_credit(first, 1000)
    assert got(rig.do())[first] == [b"a%d" % number for number in range(1, 300)]
    assert not lines.parked


def test_the_visits_of_a_tick_are_limited() -> None:
    """A long queue whose groups are another's is passed in several ticks."""
    rig = Rig(config=EngineConfig(dispatch_messages_max=10))
    declare(rig, "q", groups=True)
    first = rig.consumer(credit=1)
    send(rig, *[b"a%d" % number for number in range(300)])
    second = rig.consumer(credit=1)
    send(rig, b"b1")
    ticks = 0
    effects = rig.step()
    while not words(rig, second):
        effects += rig.step()
        ticks += 1
    assert first in rig.queue().acquired
    assert ticks < 50


def test_runs_that_are_joined_keep_their_groups() -> None:
    """Also with messages without a group; a part has those of its messages."""
    run = run_of(5, b"-1", b"-2")
    for index, other in enumerate((run_of(5, b"a1", b"-3"), run_of(5, b"-4"))):
        other.first_id = 2 + 2 * index
        assert run.join(other, bytes_max=100)
    assert run.groups == [0, 0, code_of(b"a"), 0, 0]
    assert run.part(2, 4).groups == [code_of(b"a"), 0]
    assert run.part(0, 1).bodies == [b"-1"]


def test_a_transaction_posts_groups(rig: Rig) -> None:
    """They are there with its commit, each message in its own."""
    producer, transaction = rig.producer(), Transaction(b"t")
    rig.do(BeginTransaction(transaction))
    rig.do(run_of(producer, b"a1", b"-1", transaction=transaction), run_of(producer, b"b1", transaction=transaction))
    assert not rig.queue().groups
    rig.do(Discharge("key", transaction))
    assert sorted(rig.queue().groups.values()) == [1, 1]
    first, second = rig.consumer(), rig.consumer()
    for consumer in (first, second):
        rig.loop.set_credit(consumer, 9)
    rig.do()
    assert got(send(rig, b"b2", b"a2")) == {first: [b"b2", b"a2"]}
    again(rig)


def resumable(rig: Rig, resumes: dict[int, Outcome | None] | None = None) -> int:
    """Attach the link that may be resumed, with credit for all; return its consumer."""
    keeping = Keeping(UNSETTLED_STATE, 60_000)
    effects = rig.do(AttachConsumer("key", "q", "c", "kept", keeping=keeping, resumes=resumes))
    (consumer,) = [one.consumer for one in effects if type(one) is ConsumerReady]
    rig.loop.set_credit(consumer, 9)
    return consumer


@pytest.mark.parametrize("restarts", [False, True])
def test_a_suspended_link_keeps_its_groups(*, restarts: bool) -> None:
    """Until it ends, over a start too; the consumer that resumes it goes on with them."""
    rig = Rig()
    declare(rig, "q", groups=True)
    first = resumable(rig)
    assert got(send(rig, b"a1")) == {first: [b"a1"]}
    held = words(rig, first)
    rig.do(DetachConsumer(first, suspension=Suspension.OVER))
    if restarts:
        rig = again(rig)
    other = rig.consumer(credit=9)
    assert got(send(rig, b"a2", b"b1")) == {other: [b"b1"]}
    second = resumable(rig, dict.fromkeys(held))
    assert got(rig.do()) == {second: [b"a2"]}
    assert got(send(rig, b"a3"))[second] == [b"a3"]
    rig.do(DetachConsumer(second, suspension=Suspension.OVER))
    assert got(send(rig, b"a4")) == {}
    assert got(rig.do(EndSuspended(second, is_forced=True))) == {other: [b"a1", b"a2", b"a3", b"a4"]}
