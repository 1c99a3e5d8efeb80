"""A queue over time, and what changed between two moments, against the events themselves."""

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from ambermq.engine.entries.discard_reason import MoveReason
from ambermq.engine.entries.entry_word import entry_of
from ambermq.engine.entries.outcome import ACCEPTED, RELEASED
from ambermq.engine.events import Event, Moved, Published, Settled
from ambermq.engine.fold.apply import fold
from ambermq.engine.model.queue import Queue
from ambermq.engine.model.state import EMPTY_STATE, State
from ambermq.tools.history.state_changes import COUNTS, StateFold, link_changes, queue_changes, wiring_changes
from ambermq.tools.history.timeline import nice_step_us, oldest_entry, sampled, step_ends
from tests.engine.lived import Lived, singles, states_of

SECOND = 1_000_000


@pytest.fixture(scope="module")
def events(tmp_path_factory: pytest.TempPathFactory) -> list[Event]:
    """Two lives' events."""
    lived = Lived(tmp_path_factory.mktemp("timeline"), seed=11)
    lived.live(150)
    lived.end()
    lived.start()
    lived.live(80)
    lived.end()
    return lived.events()


@pytest.mark.parametrize("name", ["one", "two", "three", "none"])
def test_a_sample_is_the_queue_as_it_was_at_that_time(events: list[Event], name: str) -> None:
    """For every second, and the counts of a step are those of the events in it."""
    begin, end = events[0].time_us, events[-1].time_us
    times = step_ends(begin_us=begin, end_us=end, step_us=SECOND)
    before = fold(EMPTY_STATE, [event for event in events if event.time_us <= begin])
    later = [event for event in events if event.time_us > begin]
    last = begin
    for time_us, sample in zip(times, sampled(before, later, name, times), strict=True):
        state = fold(EMPTY_STATE, [event for event in events if event.time_us <= time_us])
        assert sample.queue == state.queue_named(name)
        if sample.queue is not None:
            step = [event for event in events if last < event.time_us <= time_us]
            assert sample.published == sum(_published(event, sample.queue.id) for event in step)
            assert oldest_entry(sample.queue) == min(_entries(sample.queue), default=None)
        last = time_us


def test_a_sample_after_a_step_back_is_that_of_the_last_event_at_its_time(events: list[Event]) -> None:
    """An event of the wrong future held back all that came after it."""
    half = len(events) // 2
    late = [replace(event, time_us=event.time_us + 10**15) for event in events[:half]]
    stepped = [*late, *events[half:]]
    times = step_ends(begin_us=events[half].time_us, end_us=events[-1].time_us, step_us=SECOND)
    ends = [max(event.offset for event in stepped if event.time_us <= time_us) for time_us in times]
    for end, sample in zip(ends, sampled(EMPTY_STATE, stepped, "one", times, offsets=ends), strict=True):
        state = fold(EMPTY_STATE, [event for event in stepped if event.offset <= end])
        assert sample.queue == state.queue_named("one")


def _published(event: Event, queue: int) -> int:
    """Return how many messages came to a queue by an event, from a producer or from another queue."""
    if isinstance(event, Moved) and event.reason is MoveReason.DUE:
        # It was published when it was scheduled.
        return 0
    came = event.queues if isinstance(event, Published) else event.targets if isinstance(event, Moved) else ()
    return len(event.words) // 8 if queue in came else 0  # type: ignore[union-attr]  # both have words


def _entries(queue: Queue) -> Iterator[int]:
    held = [word for words in queue.acquired.values() for word in words]
    waiting = [word for words in queue.waiting_lists for word in words]
    return (entry_of(word) for word in (*waiting, *held))


@given(begin_us=st.integers(0, 10**12), duration_us=st.integers(1, 10**12), step_us=st.integers(10**9, 10**12))
def test_steps_rise_and_end_at_the_end(begin_us: int, duration_us: int, step_us: int) -> None:
    """All but the last end at multiples of the step."""
    ends = step_ends(begin_us=begin_us, end_us=begin_us + duration_us, step_us=step_us)
    assert ends == sorted(set(ends))
    assert ends[0] > begin_us
    assert ends[-1] == begin_us + duration_us
    assert all(end % step_us == 0 for end in ends[:-1])


@given(st.integers(0, 10**17))
def test_a_nice_step_fills_any_duration_with_about_twenty(duration_us: int) -> None:
    """Never more than 21; a whole number of seconds."""
    step_us = nice_step_us(duration_us)
    assert step_us % SECOND == 0
    assert duration_us // step_us <= 20


@given(st.data())
def test_what_changed_is_the_difference_of_the_states(events: list[Event], data: st.DataObject) -> None:
    """Counts are those of the events in between, of deleted queues too; links are those that differ."""
    whole, states = singles(events), states_of(events)
    first, last = sorted(data.draw(st.lists(st.sampled_from(sorted(states)), min_size=2, max_size=2)))
    between = StateFold(states[first])
    inner = [event for event in whole if first < event.offset <= last]
    between.fold(inner)
    assert between.after == states[last]
    assert sum(between.counts.values()) == len(inner)
    rows = {row["id"]: row for row in queue_changes(between)}
    assert set(between.deleted) <= set(rows)
    for queue in {*states[first].queues, *states[last].queues} - set(rows):
        assert states[first].queues[queue] is states[last].queues[queue]
    for queue, row in rows.items():
        assert row["published"] == sum(_published(event, queue) for event in inner)
        assert row["accepted"] + row["released"] <= sum(_settled(event, queue) for event in inner)
        assert (row["depth_then"] is None) == (queue not in states[first].queues)
        assert (row["depth_now"] is None) == (queue not in states[last].queues)
        assert all(row[name] >= 0 for name in COUNTS)
    links = list(link_changes(states[first], states[last], {}))
    came = {row["id"] for row in links if row["change"] == "came"}
    assert came == _links(states[last]) - _links(states[first])
    assert {row["id"] for row in links} - came == _links(states[first]) - _links(states[last])
    assert list(wiring_changes(states[last], states[last], {})) == []


def _links(state: State) -> set[int]:
    return {*state.producers, *state.consumers}


def _settled(event: Event, queue: int) -> int:
    is_it = type(event) is Settled and event.queue == queue and event.outcome in (ACCEPTED, RELEASED)
    return len(event.words) // 8 if is_it and type(event) is Settled else 0
