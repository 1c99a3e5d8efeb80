"""The dispatch: turns, order, exclusions, budgets, drains."""

from collections import deque
from dataclasses import replace
from unittest import mock

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from ambermq.engine.config import EngineConfig
from ambermq.engine.dispatch.demand import Want
from ambermq.engine.dispatch.selector_scan import SelectorScan
from ambermq.engine.effects import AT_CLOSE, Deliver, Drained
from ambermq.engine.entries.entry_word import size_of, unpack_words
from ambermq.engine.entries.outcome import ACCEPTED, MODIFIED_FAILED, RELEASED, Outcome, OutcomeKind
from ambermq.engine.events import Acquired, Settled
from ambermq.engine.selectors.selector import parse_selector
from tests.engine.world import World

HERE = Outcome(OutcomeKind.MODIFIED, undeliverable_here=True)
ANNOTATED = Outcome(OutcomeKind.MODIFIED, annotations=((b"\xa3\x01a", b"\xb0" + bytes(1500)),))


def numbers(world: World) -> list[int]:
    """Return the words that are ready."""
    return list(world.queue().ready)


def drained(world: World, budget: int = 1000) -> list[int]:
    """Dispatch; return the consumers that were drained."""
    return [effect.consumer for effect in world.deal(budget) if type(effect) is Drained]


def selecting(world: World, name: str = "q", *, credit: int = 1000) -> int:
    """Attach a consumer with a selector."""
    consumer = world.consumer(name)
    queue = world.demand.wants[consumer].queue
    world.demand.remove(consumer)
    scan = SelectorScan(parse_selector("a = 1", bytes_max=100))
    world.demand.add(Want(consumer, queue, "link", scan=scan))
    world.set_credit(consumer, credit)
    return consumer


def selected(world: World, budget: int, bytes_max: int = 1 << 20) -> dict[int, list[int]]:
    """Dispatch once, where all messages are selected; return the words that each consumer got, in order, all left."""
    return world.dealt(budget, bytes_max, lambda _queue, words, _: [{"a": 1}] * len(words))


@pytest.mark.parametrize("consumers", [1, 3])
@pytest.mark.parametrize("outcome", [ANNOTATED, replace(ANNOTATED, undeliverable_here=True)])
def test_annotations_of_outcomes_count_as_deliveries(consumers: int, outcome: Outcome) -> None:
    """Messages with 1 KiB of them use up the budget of a tick sooner; all are delivered in later ticks."""
    world = World()
    first = world.consumer(credit=40)
    world.publish(world.producer(), *[10] * 40)
    words = world.dealt()[first]
    world.settle(world.queue().id, first, words, outcome)
    world.demand.remove(first)
    for _ in range(consumers):
        world.consumer(credit=100)
    ticks = []
    while world.demand.dirty:
        ticks.append(sum(map(len, world.dealt(200).values())))
    assert sum(ticks) == 40
    assert max(ticks) <= 3


@given(count=st.integers(1, 5), messages=st.integers(0, 40))
def test_of_k_consumers_with_credit_each_gets_every_kth(count: int, messages: int) -> None:
    """Exactly words[i::k]."""
    world = World()
    consumers = [world.consumer(credit=100) for _ in range(count)]
    if messages:
        world.publish(world.producer(), *[10] * messages)
    words = numbers(world)
    expected = {consumer: words[turn::count] for turn, consumer in enumerate(consumers) if words[turn::count]}
    assert world.dealt() == expected


class TurnMachine(RuleBasedStateMachine):
    """Against a ring of consumers that serves one message at a time: the consumer after the last served one is next."""

    @initialize()
    def begin(self) -> None:
        self.world = World()
        self.producer = self.world.producer()
        self.ring: deque[list[int]] = deque()
        """[consumer, credit], whose turn it is first."""
        self.waiting: deque[int] = deque()

    @rule(credit=st.integers(0, 5))
    def join(self, credit: int) -> None:
        self.ring.append([self.world.consumer(credit=credit), credit])

    @rule(pick=st.integers(0, 9))
    def leave(self, pick: int) -> None:
        if self.ring:
            consumer = self.ring[pick % len(self.ring)]
            self.ring.remove(consumer)
            self.world.demand.remove(consumer[0])

    @rule(pick=st.integers(0, 9), credit=st.integers(0, 7))
    def set_credit(self, pick: int, credit: int) -> None:
        if self.ring:
            consumer = self.ring[pick % len(self.ring)]
            consumer[1] = credit
            self.world.set_credit(consumer[0], credit)

    @rule(count=st.integers(1, 9))
    def publish(self, count: int) -> None:
        self.world.publish(self.producer, *[1] * count)
        self.waiting.extend(numbers(self.world)[-count:])

    @rule(budget=st.integers(1, 12))
    def dispatch(self, budget: int) -> None:
        expected: dict[int, list[int]] = {}
        for _ in range(budget):
            turn = next((index for index, (_, credit) in enumerate(self.ring) if credit), None)
            if turn is None or not self.waiting:
                break
            self.ring.rotate(-turn - 1)
            consumer = self.ring[-1]
            consumer[1] -= 1
            expected.setdefault(consumer[0], []).append(self.waiting.popleft())
        assert self.world.dealt(budget) == expected

    @invariant()
    def what_waits_is_ready(self) -> None:
        assert list(self.waiting) == numbers(self.world)


TestTurns = TurnMachine.TestCase
TestTurns.settings = settings(max_examples=80, stateful_step_count=40, deadline=None)


def test_a_budget_cut_goes_on_in_the_next_tick() -> None:
    """A queue that has more stays dirty, and the turn is remembered."""
    world = World()
    one, two = world.consumer(credit=100), world.consumer(credit=100)
    world.publish(world.producer(), *[10] * 7)
    words = numbers(world)
    assert world.dealt(budget=3) == {one: words[0:3:2], two: words[1:2]}
    assert world.demand.dirty
    assert world.dealt(budget=100) == {two: words[3::2], one: words[4::2]}
    assert not world.demand.dirty


@pytest.mark.parametrize(("bytes_max", "expected"), [(1, [1] * 6), (100, [1] * 6), (101, [2] * 3), (999, [6])])
def test_a_budget_of_bytes_is_cut_behind_the_message_that_uses_it_up(bytes_max: int, expected: list[int]) -> None:
    """One always goes; the rest goes in the next ticks."""
    world = World(EngineConfig(dispatch_bytes_max=bytes_max))
    consumer = world.consumer(credit=100)
    world.publish(world.producer(), *[100] * 6)
    assert [len(world.dealt()[consumer]) for _ in expected] == expected
    assert not world.queue().ready


@example(sizes=[1, 0], bytes_max=1, count=1, returned=False)
@given(
    sizes=st.lists(st.integers(0, 5000), min_size=1, max_size=30),
    bytes_max=st.integers(1, 9000),
    count=st.integers(1, 4),
    returned=st.booleans(),
)
def test_no_budget_of_bytes_changes_whose_turn_it_is(
    sizes: list[int], bytes_max: int, count: int, *, returned: bool
) -> None:
    """Over all ticks each of k consumers gets words[i::k], and none deals more than the budget and one message."""
    world = World(EngineConfig(dispatch_bytes_max=bytes_max))
    first = world.consumer(credit=100)
    world.publish(world.producer(), *sizes)
    words = numbers(world)
    consumers = [first, *[world.consumer() for _ in range(count - 1)]]
    if returned:
        while len(world.queue().held_by(first)) < len(words):
            world.dealt()
        world.settle(world.queue().id, first, words, HERE if count > 1 else RELEASED)
        consumers = consumers[1:] or consumers
        world.set_credit(first, 0)
    for consumer in consumers:
        world.set_credit(consumer, 100)
    got: dict[int, list[int]] = {consumer: [] for consumer in consumers}
    while world.demand.dirty:
        dealt = world.dealt()
        tick = sorted(word for share in dealt.values() for word in share)
        assert sum(map(size_of, tick[:-1])) < bytes_max
        for consumer, share in dealt.items():
            got[consumer] += share
    assert got == {consumer: words[turn :: len(consumers)] for turn, consumer in enumerate(consumers)}


def test_a_queue_that_uses_up_each_budget_keeps_none_waiting() -> None:
    """It stands behind the others the next time."""
    world = World()
    many, one = world.consumer("many", credit=1000), world.consumer("one", credit=1000)
    world.publish(world.producer("many"), *[10] * 50)
    world.publish(world.producer("one"), 10)
    dealt = [set(world.dealt(budget=5)) for _ in range(3)]
    assert dealt == [{many}, {one, many}, {many}]


def test_a_selector_that_uses_each_budget_delays_no_other_queue() -> None:
    """A queue that finds the budget used up keeps its place: it is next."""
    world = World()
    select, plain = selecting(world, "many"), world.consumer("one", credit=9)
    world.publish(world.producer("many"), *[10] * 50)
    world.publish(world.producer("one"), 10)
    assert [set(selected(world, 2)) for _ in range(3)] == [{select}, {plain, select}, {select}]


@pytest.mark.parametrize(("budget", "bytes_max"), [(1, 1 << 20), (6, 1 << 20), (1000, 1), (1000, 60), (1000, 61)])
def test_a_selector_that_uses_each_budget_delays_no_consumer_of_its_queue(budget: int, bytes_max: int) -> None:
    """If selecting consumers use up a tick the others are first in the next one, and the other way round."""
    world = World()
    select, plain = selecting(world), world.consumer(credit=1000)
    world.publish(world.producer(), *[10] * 50)
    words = numbers(world)
    ticks = [selected(world, budget, bytes_max) for _ in range(4)]
    assert [set(tick) for tick in ticks] == [{select}, {plain}, {select}, {plain}]
    got = [word for tick in ticks for share in tick.values() for word in share]
    assert got == words[: len(got)]


def test_the_turns_continue_if_selectors_use_up_each_budget() -> None:
    """Consumers without a selector have turns among themselves, and so have those with one."""
    world = World()
    selects = [selecting(world), selecting(world)]
    plains = [world.consumer(credit=9) for _ in range(3)]
    world.publish(world.producer(), *[10] * 12)
    expected = [[each] for turn in range(6) for each in (selects[turn % 2], plains[turn % 3])]
    assert [list(selected(world, 1)) for _ in expected] == expected


def test_a_queue_whose_selector_used_up_a_tick_goes_behind_the_others() -> None:
    """That others of it go first is among themselves."""
    world = World()
    select, waiting, plain = selecting(world, "many"), world.consumer("many", credit=9), world.consumer("one", credit=9)
    world.publish(world.producer("many"), *[10] * 50)
    world.publish(world.producer("one"), *[10] * 4)
    expected = [{select}, {plain}, {waiting}, {plain}, {select}, {waiting}]
    assert [set(selected(world, 2)) for _ in expected] == expected


def test_a_selector_that_leaves_budget_goes_before_the_others() -> None:
    """And so it does behind a tick in which the others went first and left some."""
    world = World()
    select, plain = selecting(world, credit=2), world.consumer(credit=2)
    world.publish(world.producer(), *[10] * 12)
    words = numbers(world)
    assert selected(world, 2) == {select: words[:2]}
    world.set_credit(select, 2)
    assert selected(world, 9) == {plain: words[2:4], select: words[4:6]}
    for position in (6, 9):
        world.set_credit(select, 1)
        world.set_credit(plain, 2)
        assert selected(world, 9) == {
            select: words[position : position + 1],
            plain: words[position + 1 : position + 3],
        }


def test_a_queue_without_plain_consumers_leaves_nothing_behind() -> None:
    """A queue without other consumers is not passed over."""
    world = World()
    selecting(world)
    world.publish(world.producer(), *[10] * 9)
    selected(world, 1)
    assert not world.demand.passed_over
    plain = world.consumer(credit=9)
    selected(world, 1)
    assert world.demand.passed_over
    world.demand.remove(plain)
    assert not world.demand.passed_over


def test_turns_go_on_where_one_record_does_not_name_all_consumers() -> None:
    """It counts them in 16 bits; the next record names the other consumers."""
    world = World()
    consumers = [world.consumer(credit=9) for _ in range(7)]
    world.publish(world.producer(), *[10] * 30)
    words = numbers(world)
    with mock.patch("ambermq.engine.dispatch.turn_shares.AUX_MAX", 3):
        dealt = world.dealt()
    assert [dealt[each] for each in consumers] == [words[turn::7] for turn in range(7)]
    assert max(len(event.consumers) for event in world.events if type(event) is Acquired) == 3


def test_a_budget_is_shared_by_queues_in_turn() -> None:
    """No queue is forgotten, and the first is the one that became dirty first."""
    world = World()
    one, two = world.consumer("a", credit=9), world.consumer("b", credit=9)
    world.publish(world.producer("a"), 1, 1, 1)
    world.publish(world.producer("b"), 1, 1, 1)
    counts = [{each: len(words) for each, words in world.dealt(budget=2).items()} for _ in range(3)]
    assert counts == [{one: 2}, {two: 2}, {one: 1, two: 1}]


def test_a_drain_is_answered_once_and_only_when_nothing_is_available() -> None:
    """Not if a budget ends the dispatch, nor without a drain or credit; it uses up the credit."""
    world = World()
    asks, producer = world.consumer(), world.producer()
    world.publish(producer, 1, 1, 1)
    world.consumer(credit=0)
    world.set_credit(asks, 5, draining=True)
    assert drained(world, budget=2) == []
    assert drained(world) == [asks]
    assert world.demand.wants[asks].credit == 0
    world.publish(producer, 1)
    assert drained(world) == []
    world.demand.wants[asks].held_count = 0
    world.set_credit(asks, 5)
    assert drained(world) == []
    world.demand.wants[asks].held_count = 0
    world.set_credit(asks, 1, draining=True)
    world.publish(producer, 1)
    assert drained(world) == []
    assert world.demand.wants[asks].credit == 0


def test_what_is_excluded_does_not_hold_back_a_drain() -> None:
    """Nothing is available to the consumer, so it hears so."""
    world = World()
    picky = world.consumer(credit=1)
    world.publish(world.producer(), 1)
    words = world.dealt()[picky]
    world.settle(world.queue().id, picky, words, HERE)
    world.set_credit(picky, 5, draining=True)
    assert drained(world) == [picky]


def test_a_drain_on_a_queue_that_is_gone_is_answered() -> None:
    """Nothing will ever be available there."""
    world = World()
    asks = world.consumer()
    queue = world.queue()
    world.state = world.state.with_fields(queues=world.state.queues.delete(queue.id))
    world.set_credit(asks, 5, draining=True)
    assert drained(world) == [asks]


def test_a_delivery_waits_for_the_record_that_enqueued_it() -> None:
    """And one that leaves settled for its settlement, which is a fact at once."""
    world = World()
    plain, settled = world.consumer(credit=2), world.consumer("s", credit=2, settled=True)
    world.publish(world.producer(), 10, 10)
    last = world.next_offset
    world.publish(world.producer("s"), 10, 10)
    first, second = [effect for effect in world.deal() if type(effect) is Deliver]
    assert (first.consumer, first.after, first.settled) == (plain, last, False)
    assert (second.consumer, second.after, second.settled) == (settled, AT_CLOSE, True)
    assert [type(event) for event in world.events[-3:]] == [Acquired, Acquired, Settled]
    gone = world.events[-1]
    assert type(gone) is Settled
    assert gone.outcome == ACCEPTED
    assert unpack_words(gone.words) == second.words
    assert world.queue("s").depth == 0
    assert world.queue("s").size == 0


def test_a_large_message_leaves_by_itself() -> None:
    """One delivery each, in order, so that no more than one is read back at a time."""
    world = World(EngineConfig(chunk_bytes=4))
    consumer = world.consumer(credit=9)
    world.publish(world.producer(), 1, 9, 9, 2)
    words = numbers(world)
    effects = world.deal()
    assert [effect.words for effect in effects if type(effect) is Deliver] == [(word,) for word in words]
    assert list(world.queue().held_by(consumer)) == words


def test_columns_come_with_a_delivery_only_where_a_queue_has_any() -> None:
    """A queue that was never failed pays nothing."""
    world = World()
    consumer, producer = world.consumer(credit=2), world.producer()
    world.publish(producer, 1, 1)
    (effect,) = world.deal()
    assert type(effect) is Deliver
    assert effect.entries is None
    world.settle(world.queue().id, consumer, list(effect.words[:1]), MODIFIED_FAILED)
    world.demand.wants[consumer].credit = 2
    world.publish(producer, 1)
    again, new = world.deal()
    assert type(again) is Deliver
    assert type(new) is Deliver
    assert again.entries is not None
    assert [entry.count for entry in again.entries if entry] == [1]
    assert new.entries == [None]
