"""What differs between two states, against sets of what is on their queues."""

from hypothesis import given, settings
from hypothesis import strategies as st

from ambermq.engine.history.state_diff import Change, changes_between
from ambermq.engine.model.queue import Queue
from ambermq.engine.model.state import State
from tests.engine.histories import lived


def _offsets(state: State, queue_id: int) -> set[int]:
    queue: Queue | None = state.queues.get(queue_id)
    if queue is None:
        return set()
    held = [word for words in queue.acquired.values() for word in words]
    return {word >> 16 for word in (*queue.ready, *queue.returned, *held)}


def _check(before: State, after: State, change: Change) -> None:
    old, new = _offsets(before, change.id), _offsets(after, change.id)
    for entries, expected in ((change.came, new - old), (change.went, old - new)):
        told = [offset for first, last in entries.ranges for offset in range(first, last + 1)]
        assert entries.count == len(expected)
        assert told == sorted(expected)[: len(told)]
        assert entries.last_offset == max(expected, default=-1)
        assert len(told) == len(expected) or len(entries.ranges) == 20
    assert (change.depth_before, change.depth_after) == (len(old), len(new))


@settings(deadline=None)
@given(st.integers(0, 1 << 32), st.integers(0, 80), st.integers(0, 80))
def test_what_came_and_went_is_told(seed: int, first: int, more: int) -> None:
    """A queue is told of exactly where it differs, with the entries that only one of the two states has."""
    before, after = lived(seed, first).state, lived(seed, first + more).state
    changes = {change.id: change for change in changes_between(before, after) if change.what == "queue"}
    for queue_id in {*before.queues.keys(), *after.queues.keys()}:
        assert (queue_id in changes) == (before.queues.get(queue_id) != after.queues.get(queue_id))
    for change in changes.values():
        _check(before, after, change)


@settings(deadline=None)
@given(st.integers(0, 1 << 32), st.integers(0, 80), st.integers(0, 80))
def test_wiring_is_told_both_ways(seed: int, first: int, more: int) -> None:
    """What is added one way is removed the other way, and a state does not differ from itself."""
    before, after = lived(seed, first).state, lived(seed, first + more).state
    there, back = (
        {(one.what, one.name, one.id, one.change) for one in changes_between(*pair) if one.what != "queue"}
        for pair in ((before, after), (after, before))
    )
    swapped = {"added": "removed", "removed": "added", "changed": "changed"}
    assert there == {(what, name, one, swapped[change]) for what, name, one, change in back}
    assert list(changes_between(after, after)) == []
