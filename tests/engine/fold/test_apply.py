"""The fold: total, the same for a run and for its messages one by one, and blind to what comes after."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ambermq.engine.entries.entry_word import make_words, pack_words, total_size, unpack_words
from ambermq.engine.entries.outcome import ACCEPTED, MODIFIED_FAILED, REJECTED, RELEASED, Outcome, OutcomeKind
from ambermq.engine.events import (
    Acquired,
    Attached,
    Chunked,
    ConsumerAttached,
    ConsumerDetached,
    Damaged,
    Detached,
    Event,
    Lost,
    MuxerDeclared,
    ProducerAttached,
    ProducerDetached,
    Published,
    Purged,
    QueueDeclared,
    QueueDeleted,
    Reset,
    Settled,
    Started,
)
from ambermq.engine.fold.apply import apply, fold
from ambermq.engine.model.muxer import MuxerKind
from ambermq.engine.model.state import EMPTY_STATE, State
from ambermq.engine.settings.queue_settings import Settings
from ambermq.snapshot.persistent_map import PersistentMap
from ambermq.snapshot.persistent_queue import PersistentQueue
from tests.model.history import check_conservation, words_on

QUEUE, CONSUMERS = 3, (11, 12, 13)
OUTCOMES = [
    ACCEPTED,
    REJECTED,
    RELEASED,
    MODIFIED_FAILED,
    Outcome(OutcomeKind.MODIFIED),
    Outcome(OutcomeKind.MODIFIED, True, True, ((b"k", b"v"),)),
]
STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            ["publish", "publish", "acquire", "acquire", "settle", "settle", "lose", "start", "purge", "damage"]
        ),
        st.integers(0, 1 << 16),
        st.integers(1, 12),
        st.booleans(),
    ),
    max_size=40,
)


def wiring() -> list[Event]:
    """Return a history with one queue."""
    return [
        Started(0, 1, 1),
        MuxerDeclared(1, 1, "QUEUE", MuxerKind.DESTINATION),
        QueueDeclared(QUEUE, 1, "q", Settings()),
        Attached(4, 1, 1, QUEUE, "q"),
        *[ConsumerAttached(consumer, 1, QUEUE, "container", "link") for consumer in CONSUMERS],
    ]


def next_event(state: State, offset: int, step: tuple[str, int, int, bool]) -> Event | None:
    """Return the event that a step means now, None where it means nothing; messages stand 1,000 offsets apart."""
    what, pick, count, scattered = step
    queue = state.queues[QUEUE]
    consumer = CONSUMERS[pick % len(CONSUMERS)]
    match what:
        case "publish":
            sizes = [(pick * (index + 1)) % 5000 for index in range(count)]
            words = make_words(offset, sizes)
            return Published(offset, offset, (QUEUE,), 9, words, total_size(words), chunks=(7,) if count == 1 else ())
        case "acquire":
            source = queue.returned or queue.ready
            consumers = CONSUMERS[: 1 + pick % 3]
            words = source.head(count - count % len(consumers) or len(consumers))
            return Acquired(offset, offset, QUEUE, consumers, words) if words else None
        case "settle":
            held = list(queue.held_by(consumer))
            words = pack_words(held[1::2][:count] if scattered else held[:count])
            return Settled(offset, offset, QUEUE, consumer, OUTCOMES[pick % len(OUTCOMES)], words) if words else None
        case "lose":
            return ConsumerDetached(offset, offset, consumer)
        case "start":
            return Started(offset, offset, state.epoch + 1)
        case "purge":
            return Purged(offset, offset, QUEUE, offset if scattered else 1000 * (pick % 40) + 3)
        case _:
            words_there = sorted(words_on(queue))
            words = pack_words(words_there[pick % len(words_there) :: 1 + pick % 7][:count]) if words_there else b""
            return Damaged(offset, offset, QUEUE, words) if words else None


def history(steps: list[tuple[str, int, int, bool]]) -> tuple[list[Event], list[State]]:
    """Return events and the states between them."""
    events, states = wiring(), list[State]()
    state = fold(EMPTY_STATE, events)
    for number, step in enumerate(steps):
        event = next_event(state, 1000 * (number + 1), step)
        if event is not None:
            state = apply(state, event)
            events.append(event)
            states.append(state)
    return events, states


def single(event: Event) -> list[Event]:
    """Return the same for each message by itself."""
    match event:
        case Published():
            words = [word.to_bytes(8, "little") for word in unpack_words(event.words)]
            return [
                Published(
                    event.offset + index, event.time_us, event.queues, 9, word, total_size(word), chunks=event.chunks
                )
                for index, word in enumerate(words)
            ]
        case Acquired():
            turns = [event.consumers[index % len(event.consumers)] for index in range(len(event.words) // 8)]
            return [
                Acquired(event.offset, event.time_us, event.queue, (consumer,), word.to_bytes(8, "little"))
                for consumer, word in zip(turns, unpack_words(event.words), strict=True)
            ]
        case Settled():
            return [
                Settled(
                    event.offset, event.time_us, event.queue, event.consumer, event.outcome, word.to_bytes(8, "little")
                )
                for word in unpack_words(event.words)
            ]
        case _:
            return [event]


def fingerprint(value: Any) -> Any:
    """Return all that a value holds, as what cannot change."""
    if isinstance(value, PersistentQueue):
        return value.to_bytes()
    if isinstance(value, PersistentMap):
        return sorted((key, fingerprint(each)) for key, each in value.items())
    if hasattr(value, "__slots__"):
        return type(value).__name__, [fingerprint(getattr(value, name)) for name in value.__slots__]
    return value


@settings(max_examples=150, deadline=None)
@given(steps=STEPS)
def test_a_run_of_n_equals_n_runs_of_one(steps: list[tuple[str, int, int, bool]]) -> None:
    """To the last counter, entry and time."""
    events, states = history(steps)
    one_by_one = fold(EMPTY_STATE, [one for event in events for one in single(event)])
    assert one_by_one == fold(EMPTY_STATE, events)
    assert one_by_one == (states[-1] if states else one_by_one)


@settings(max_examples=150, deadline=None)
@given(steps=STEPS)
def test_no_state_changes_when_another_is_made_of_it(steps: list[tuple[str, int, int, bool]]) -> None:
    """Each is what it was, whatever came after it; and on each, nothing was invented or forgotten."""
    state = fold(EMPTY_STATE, wiring())
    seen: list[tuple[State, Any]] = []
    for number, step in enumerate(steps):
        event = next_event(state, 1000 * (number + 1), step)
        if event is not None:
            state = apply(state, event)
            seen.append((state, fingerprint(state)))
            check_conservation(state.queues[QUEUE])
    for old, before in seen:
        assert fingerprint(old) == before


UNKNOWN = 999
EVENTS_ABOUT_NOTHING = [
    Published(50, 9, (UNKNOWN,), 9, make_words(50, [1]), 1),
    Acquired(50, 9, UNKNOWN, (11,), make_words(50, [1])),
    Settled(50, 9, UNKNOWN, 11, ACCEPTED, make_words(50, [1])),
    QueueDeleted(50, 9, UNKNOWN),
    Attached(50, 9, UNKNOWN, QUEUE, "q"),
    Detached(50, 9, UNKNOWN, QUEUE, 4),
    ProducerDetached(50, 9, UNKNOWN),
    ConsumerDetached(50, 9, UNKNOWN),
    Purged(50, 9, UNKNOWN, 60),
    Damaged(50, 9, UNKNOWN, pack_words([5])),
    Damaged(50, 9, QUEUE, pack_words([5])),
    Settled(50, 9, QUEUE, 11, RELEASED, make_words(50, [1])),
    Acquired(50, 9, QUEUE, CONSUMERS, make_words(50, [1])),
    Settled(50, 9, QUEUE, UNKNOWN, ACCEPTED, make_words(50, [1])),
    Chunked(50, 9, 6, b"x"),
    Lost(50, 9, 1, 2),
]


@pytest.mark.parametrize("event", EVENTS_ABOUT_NOTHING, ids=lambda event: type(event).__name__)
def test_a_reference_to_what_is_gone_changes_nothing(event: Event) -> None:
    """Apply never refuses: an old log always replays."""
    before = fold(EMPTY_STATE, wiring())
    after = apply(before, event)
    assert after.with_fields(time_us=before.time_us) == before


def test_a_deleted_queue_takes_its_consumers_and_its_name_with_it() -> None:
    """The name is free, the id is not."""
    state = fold(EMPTY_STATE, [*wiring(), Detached(50, 9, 1, QUEUE, 4), QueueDeleted(51, 9, QUEUE)])
    assert not state.queues
    assert not state.queue_names
    assert not state.consumers
    assert not state.muxers[1].attachments
    again = apply(state, QueueDeclared(60, 9, "q", Settings()))
    assert again.queue_names["q"] == 60


def test_a_reset_leaves_nothing_but_epoch_and_time() -> None:
    """Whatever was there: queues with messages, muxers, links."""
    words = make_words(100, [1])
    life = [*wiring(), Published(100, 9, (QUEUE,), 20, words, 1), Started(110, 10, 4)]
    assert fold(EMPTY_STATE, [*life, Reset(120, 11)]) == EMPTY_STATE.with_fields(epoch=4, time_us=11)


def test_a_start_ends_every_link_and_gives_everything_back() -> None:
    """With one more failed delivery each, in the order of entries, of all consumers."""
    words = make_words(100, [1] * 7)
    events = [
        *wiring(),
        ProducerAttached(20, 9, 1, "q", "container", "link"),
        Published(100, 9, (QUEUE,), 20, words, 7),
        Acquired(110, 9, QUEUE, CONSUMERS, words[:48]),
        Started(120, 9, 2),
    ]
    state = fold(EMPTY_STATE, events)
    queue = state.queues[QUEUE]
    assert (state.epoch, len(state.consumers), len(state.producers)) == (2, 0, 0)
    assert queue.returned.to_bytes() == words[:48]
    assert queue.ready.to_bytes() == words[48:]
    assert {entry.count for entry in queue.entries.values()} == {1}
    assert (len(queue.entries), queue.counters.failed, queue.acquired_count) == (6, 6, 0)
