"""Messages that came back: they go out before new ones, and one that is excluded from a consumer blocks no other."""

from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ambermq.engine.dispatch.returned_walk import ReturnJournal, Visits
from ambermq.engine.entries.entry_word import unpack_words
from ambermq.engine.entries.outcome import MODIFIED_FAILED, RELEASED, Outcome
from ambermq.engine.events import Acquired
from tests.engine.dispatch.test_dispatch import HERE, numbers, selected, selecting
from tests.engine.world import World


@given(order=st.permutations(range(6)), outcome=st.sampled_from([RELEASED, MODIFIED_FAILED]))
def test_what_comes_back_in_any_order_goes_out_in_its_own_and_before_what_is_new(
    order: list[int], outcome: Outcome
) -> None:
    """Released or failed one by one."""
    world = World()
    first, producer = world.consumer(credit=6), world.producer()
    world.publish(producer, *[10] * 6)
    words = world.dealt()[first]
    world.publish(producer, 10, 10)
    for index in order:
        world.settle(world.queue().id, first, [words[index]], outcome)
    fresh = numbers(world)
    second = world.consumer(credit=100)
    assert world.dealt() == {second: words + fresh}
    assert [world.queue().entries[word >> 16].count for word in words] == [int(outcome.delivery_failed)] * 6
    assert all(world.queue().entries[word >> 16].was_acquired for word in words)
    assert not any(word >> 16 in world.queue().entries for word in fresh)


def test_an_entry_that_is_undeliverable_here_passes_by_and_blocks_nothing() -> None:
    """The consumer that said so gets everything else; another gets it at once, before what is new."""
    world = World()
    picky, producer = world.consumer(credit=3), world.producer()
    world.publish(producer, 10, 10, 10)
    words = world.dealt()[picky]
    queue = world.queue().id
    world.settle(queue, picky, words[:1], HERE)
    world.settle(queue, picky, words[1:], RELEASED)
    world.set_credit(picky, 10)
    assert world.dealt() == {picky: words[1:]}
    world.publish(producer, 10)
    fresh = numbers(world)
    assert world.dealt() == {picky: fresh}
    assert list(world.queue().returned) == words[:1]
    world.publish(producer, 10)
    other = world.consumer(credit=1)
    assert world.dealt() == {other: words[:1], picky: list(world.queue().acquired[picky])[-1:]}


@pytest.mark.parametrize("budget", [7, 300, 5000])
def test_a_thousand_excluded_entries_block_nothing_behind_them(budget: int) -> None:
    """What came back is served completely, in order, before what is new, however much of it is excluded."""
    world = World()
    picky, producer = world.consumer(credit=2000), world.producer()
    world.publish(producer, *[1] * 1500)
    words = world.dealt(budget=5000)[picky]
    world.settle(world.queue().id, picky, words[:1000], HERE)
    world.settle(world.queue().id, picky, words[1000:], RELEASED)
    world.publish(producer, 1)
    fresh = numbers(world)
    world.set_credit(picky, 2000)
    got: list[int] = []
    while world.demand.dirty:
        got += world.dealt(budget).get(picky, [])
    assert got == words[1000:] + fresh
    other = world.consumer(credit=2000)
    got = []
    while world.demand.dirty:
        got += world.dealt(budget).get(other, [])
    assert got == words[:1000]


@pytest.mark.parametrize(("budget", "bytes_max"), [(1, 1 << 20), (1000, 10)])
def test_the_scan_of_excluded_messages_stays_within_a_budget(budget: int, bytes_max: int) -> None:
    """A tick that selecting consumers used up too: the rest waits for the next tick."""
    world = World()
    select, plain, producer = selecting(world), world.consumer(), world.producer()
    world.publish(producer, 10, 10)
    words = selected(world, 3)[select]
    world.settle(world.queue().id, select, words, HERE)
    world.publish(producer, 10, 10)
    fresh = numbers(world)
    world.set_credit(plain, 9)
    expected = [{select: fresh[:1]}, {plain: words[:1]}, {select: fresh[1:]}, {plain: words[1:]}]
    assert [selected(world, budget, bytes_max) for _ in expected] == expected


def test_what_was_looked_through_in_vain_is_looked_through_again_when_something_changed() -> None:
    """A consumer that comes later, or an entry that comes back later, is not overlooked."""
    world = World()
    picky, producer = world.consumer(credit=2), world.producer()
    world.publish(producer, 1, 1)
    words = world.dealt()[picky]
    queue = world.queue().id
    world.settle(queue, picky, words[:1], HERE)
    world.set_credit(picky, 5)
    assert world.dealt() == {}
    world.settle(queue, picky, words[1:], RELEASED)
    assert world.dealt() == {picky: words[1:]}
    other = world.consumer(credit=5)
    assert world.dealt() == {other: words[:1]}


def test_what_was_looked_through_in_vain_is_not_looked_through_for_every_message() -> None:
    """A thousand excluded entries do not make each new message cost a thousand."""
    world = World()
    picky, producer = world.consumer(credit=1000), world.producer()
    world.publish(producer, *[1] * 1000)
    world.settle(world.queue().id, picky, world.dealt()[picky], HERE)
    world.set_credit(picky, 100)
    assert world.dealt() == {}
    with mock.patch("ambermq.engine.dispatch.dispatch.unpack_words", wraps=unpack_words) as reads:
        for _ in range(10):
            world.publish(producer, 1)
            assert len(world.dealt()[picky]) == 1
    assert max(len(call.args[0]) for call in reads.call_args_list) == 8


def came_back(world: World, count: int, excluded: int) -> tuple[int, list[int]]:
    """Return a consumer and the words that it gave back; the last `excluded` ones exclude it."""
    picky = world.consumer(credit=count)
    world.publish(world.producer(), *[1] * count)
    words = world.dealt(budget=count)[picky]
    queue = world.queue().id
    if excluded < count:
        world.settle(queue, picky, words[: count - excluded], RELEASED)
    world.settle(queue, picky, words[count - excluded :], HERE)
    return picky, words


@pytest.mark.parametrize("consumers", [1, 3])
def test_one_exclusion_among_many_costs_no_event_for_each_message(consumers: int) -> None:
    """Messages that came back are acquired in runs, whether or not one of them excludes a consumer."""
    world = World()
    _, words = came_back(world, 8000, 1)
    readers = [world.consumer(credit=8000) for _ in range(consumers)]
    before, got = len(world.events), list[int]()
    while world.demand.dirty:
        dealt = world.dealt(budget=2000)
        assert sum(map(len, dealt.values())) <= 2000
        assert all(share == sorted(share) for share in dealt.values())
        assert len(dealt) in {0, len(readers)}
        got += sorted(word for share in dealt.values() for word in share)
    assert got == words
    assert len([event for event in world.events[before:] if type(event) is Acquired]) <= 16


def test_visits_of_excluded_messages_count_in_a_tick() -> None:
    """A tick visits eight messages for each delivery that it may make; what is new waits for the end of the walk."""
    world = World()
    picky, words = came_back(world, 1000, 1000)
    world.publish(world.producer(), 1)
    fresh = numbers(world)
    world.set_credit(picky, 10)
    visited = []
    while world.demand.dirty:
        with mock.patch.object(ReturnJournal, "ahead", autospec=True, side_effect=ReturnJournal.ahead) as ahead:
            dealt = world.dealt(budget=10)
        visited.append(sum(min(call.args[3], 80) for call in ahead.call_args_list))
        if dealt:
            assert dealt == {picky: fresh}
    assert len(visited) == 1000 // 80 + 1
    assert list(world.queue().returned) == words


def test_a_walk_past_exclusions_does_not_begin_anew() -> None:
    """One of 3,000 excluded messages is taken by another consumer, and comes back: only it is visited."""
    world = World()
    picky, words = came_back(world, 3000, 3000)
    world.set_credit(picky, 10)
    while world.demand.dirty:
        world.dealt()
    other = world.consumer()
    for word in (words[0], words[1234], words[2999]):
        world.set_credit(other, 1)
        got = world.dealt(budget=5000)[other]
        assert len(got) == 1
        world.settle(world.queue().id, other, got, RELEASED)
        with mock.patch.object(Visits, "passed", autospec=True) as passed:
            assert world.dealt() == {}
        assert max([call.args[2] for call in passed.call_args_list], default=0) <= 1
        assert word in words


def test_turns_go_on_among_what_came_back_with_exclusions() -> None:
    """One each, from the consumer after the last served one, without excluded consumers."""
    world = World()
    one, two, three = (world.consumer(credit=2) for _ in range(3))
    world.publish(world.producer(), *[1] * 6)
    dealt = world.dealt()
    queue = world.queue().id
    world.settle(queue, one, dealt[one], HERE)
    for consumer in (two, three):
        world.settle(queue, consumer, dealt[consumer], RELEASED)
    words = sorted(word for each in dealt.values() for word in each)
    for consumer in (one, two, three):
        world.set_credit(consumer, 2)
    # words[0] and words[3] are nothing for `one`.
    assert world.dealt() == {two: [words[0], words[3]], three: words[1:2] + words[4:5], one: [words[2], words[5]]}


@given(order=st.permutations(range(6)))
def test_each_consumer_holds_what_it_was_sent(order: list[int]) -> None:
    """Whatever the order in which messages come back that consumers have passed."""
    world = World()
    picky, producer = world.consumer(credit=7), world.producer()
    world.publish(producer, *[10] * 7)
    words, queue = world.dealt()[picky], world.queue().id
    world.settle(queue, picky, words[6:], HERE)
    world.settle(queue, picky, words[:6], RELEASED)
    consumers = [world.consumer(), world.consumer()]
    for consumer in consumers:
        world.set_credit(consumer, 10)
    shares = world.dealt()
    for index in order:
        holder = next(one for one in consumers if words[index] in shares[one])
        world.settle(queue, holder, [words[index]], HERE if index == 0 else RELEASED)
    for consumer in consumers:
        world.set_credit(consumer, 10)
        world.demand.touch(queue)
    for consumer, share in world.dealt().items():
        assert set(share) <= set(world.queue().held_by(consumer))
