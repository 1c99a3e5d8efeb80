"""Entries whose messages a repair could not save leave their queues."""

from hypothesis import example, given, settings
from hypothesis import strategies as st

from ambermq.engine.decide.decide import started
from ambermq.engine.entries.entry_word import WORD_BYTES, entry_of
from ambermq.engine.events import Damaged
from ambermq.engine.fold.apply import apply, fold
from ambermq.engine.fold.data_loss import damage_of
from ambermq.engine.model.queue import Queue
from ambermq.engine.model.state import State
from tests.engine.histories import lived
from tests.engine.world import World
from tests.model.history import check_conservation, words_on

_RANGES = st.lists(st.tuples(st.integers(0, 400), st.integers(1, 60)).map(lambda one: (one[0], sum(one))), max_size=4)


def begun(world: World) -> State:
    """The state of a world whose broker has just started: nothing is acquired."""
    return fold(world.state, started(world.state, world.context))


def is_gone(queue: Queue, word: int, lost: list[tuple[int, int]]) -> bool:
    """Whether any record of a message lies in a lost range, looked at one by one."""
    entry = queue.entries.get(entry_of(word))
    records = [entry_of(word), *(entry.chunks if entry else ())]
    return any(first <= record < end for record in records for first, end in lost)


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 50), lost=_RANGES)
@example(seed=1, lost=[(0, 1000)])
@example(seed=2, lost=[(0, 90), (50, 120), (60, 61)])
def test_just_those_leave_whose_records_are_lost(seed: int, lost: list[tuple[int, int]]) -> None:
    """An entry goes where its own record or any piece lies in a lost range, and is counted; no other is touched."""
    state = begun(lived(seed, 150))
    events = list(damage_of(state, lost, next_offset=5000, time_us=state.time_us))
    assert [event.offset for event in events] == list(range(5000, 5000 + len(events)))
    after = fold(state, events)
    for queue_id, queue in state.queues.items():
        left = [word for word in words_on(queue) if not is_gone(queue, word, lost)]
        assert words_on(after.queues[queue_id]) == left
        check_conservation(after.queues[queue_id])
    assert list(damage_of(after, lost, next_offset=6000, time_us=state.time_us)) == []


def test_many_leave_in_runs_that_a_batch_can_hold() -> None:
    """Ten thousand are three events; those before and behind stay."""
    world = World()
    producer = world.producer()
    for _ in range(12):
        world.publish(producer, *[5] * 1000)
    state = begun(world)
    first, *_, last = map(entry_of, world.queue().ready)
    events = list(damage_of(state, [(first + 500, last - 1499)], next_offset=20_000, time_us=state.time_us))
    assert [len(event.words) // WORD_BYTES for event in events] == [1024] * 9 + [784]
    (queue,) = fold(state, events).queues.values()
    assert [entry_of(word) for word in queue.ready] == [*range(first, first + 500), *range(last - 1499, last + 1)]


def test_a_run_that_cannot_be_read_is_as_many_runs_of_one() -> None:
    """Wherever the entries stand: acquired, come back, or never acquired."""
    for seed in range(8):
        state = lived(seed, 150).state
        for queue_id, queue in state.queues.items():
            words = words_on(queue)[::2]
            packed = [word.to_bytes(WORD_BYTES, "little") for word in words]
            single = fold(state, [Damaged(5000, state.time_us, queue_id, word) for word in packed])
            assert apply(state, Damaged(5000, state.time_us, queue_id, b"".join(packed))) == single
