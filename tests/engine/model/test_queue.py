"""The seldom transitions of a queue, case by case; the others are held to laws in test_apply and tests/model."""

import pytest

from ambermq.engine.entries.entry import Entry
from ambermq.engine.entries.entry_word import make_words, total_size
from ambermq.engine.entries.outcome import ACCEPTED, MODIFIED_FAILED, RELEASED, Outcome, OutcomeKind
from ambermq.engine.model.queue import Queue, new_queue
from ambermq.engine.settings.queue_settings import Settings
from tests.model.history import check_conservation


def queue_of(count: int, *, first: int = 100) -> Queue:
    """Return a queue with so many messages of 10 bytes."""
    words = make_words(first, [10] * count)
    return new_queue(1, "q", Settings()).push(words, total_size(words), 0)


@pytest.mark.parametrize(("before", "left"), [(0, 6), (100, 6), (102, 4), (103, 4), (106, 1), (107, 0), (1 << 40, 0)])
def test_a_purge_takes_what_is_available_below_an_offset(before: int, left: int) -> None:
    """Ready and returned alike; what is acquired stays, with its columns."""
    queue = queue_of(7)
    words = queue.ready.to_bytes()
    queue = queue.acquire((5,), words[:24]).settle(5, words[:8], MODIFIED_FAILED).settle(5, words[8:16], RELEASED)
    queue = queue.with_entry(102, Entry(chunks=(9,))).with_entry(104, Entry(chunks=(8,)))
    purged = queue.purge(before)
    assert purged.available == left
    assert purged.counters.purged == 6 - left
    assert purged.held_by(5).to_bytes() == words[16:24]
    assert purged.entries[102] == Entry(chunks=(9,))
    assert (104 in purged.entries) == (before <= 104)
    check_conservation(purged)


@pytest.mark.parametrize("where", ["ready", "returned", "acquired"])
def test_a_damaged_entry_is_set_aside_wherever_it_stands(where: str) -> None:
    """It is counted, its columns and its bytes go with it, and the others stay."""
    queue = queue_of(3)
    words = queue.ready.to_bytes()
    if where != "ready":
        queue = queue.acquire((5,), words[:16])
    if where == "returned":
        queue = queue.settle(5, words[:16], MODIFIED_FAILED)
    parked = queue.remove_damaged(words[:8])
    assert (parked.depth, parked.size, parked.counters.damaged) == (2, 20, 1)
    assert 100 not in parked.entries
    assert parked.remove_damaged(words[:8]) is parked
    check_conservation(parked)


def test_what_a_consumer_does_not_hold_is_ignored() -> None:
    """Another's, an unknown one, one that is still available."""
    queue = queue_of(3)
    words = queue.ready.to_bytes()
    queue = queue.acquire((5,), words[:8]).acquire((6,), words[8:16])
    settled = queue.settle(5, words[8:] + make_words(7, [1]) + words[:8], ACCEPTED)
    assert (settled.accepted, settled.acquired_count, settled.available) == (1, 1, 1)
    assert queue.settle(99, words, ACCEPTED) is queue


def test_neighbours_that_fail_alike_share_their_columns() -> None:
    """65,536 of a lost consumer cost one object."""
    queue = queue_of(100)
    queue = queue.acquire((5,), queue.ready.to_bytes()).release_consumer(5, MODIFIED_FAILED)
    assert len({id(entry) for entry in queue.entries.values()}) == 1
    assert len(queue.entries) == 100


def test_exclusions_are_counted_by_entry() -> None:
    """Each entry once, however many it excludes, until it is gone."""
    here = Outcome(OutcomeKind.MODIFIED, undeliverable_here=True)
    queue = queue_of(2)
    words = queue.ready.to_bytes()
    queue = queue.acquire((5,), words).settle(5, words, here)
    assert queue.exclusions == 2
    queue = queue.acquire((6,), words[:8]).settle(6, words[:8], here)
    assert queue.entries[100].excluded == (5, 6)
    assert queue.exclusions == 2
    queue = queue.acquire((7,), words[:8]).settle(7, words[:8], ACCEPTED)
    assert queue.exclusions == 1
    assert queue.purge(1 << 40).exclusions == 0
    assert queue.acquire((8,), words[8:]).purge(1 << 40).exclusions == 1


def test_everything_that_comes_back_at_a_start_comes_back_in_one_order() -> None:
    """All consumers at once have the same result as one consumer after the other."""
    queue = queue_of(9)
    queue = queue.acquire((5, 6, 7), queue.ready.to_bytes())
    at_once = queue.release_all()
    one_by_one = queue
    for consumer in (6, 5, 7):
        one_by_one = one_by_one.release_consumer(consumer, MODIFIED_FAILED)
    assert at_once == one_by_one
    assert at_once.release_all() is at_once
