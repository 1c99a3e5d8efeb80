"""The limit of what outcomes add to messages: what is left out, what stays, and that the fold needs no limit."""

from collections import Counter

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ambermq.engine.commands import DeleteQueue, MoveMessages, PurgeQueue, Settle, SettleNamed, UpdateQueue
from ambermq.engine.config import EngineConfig
from ambermq.engine.entries.discard_reason import MoveReason
from ambermq.engine.entries.entry_word import pack_words
from ambermq.engine.entries.outcome import ACCEPTED, RELEASED, Outcome, OutcomeKind
from ambermq.engine.events import Event, Settled
from ambermq.engine.model.queue_parts.outcome_annotations import cost_of, values_of
from ambermq.engine.model.state import State
from ambermq.engine.snapshots.state_codec import image_of, state_of
from tests.engine.decide.messages.test_dead_letters import declare
from tests.engine.rig import Rig

LIMIT = 2400
"""Seven eighths are 2100 bytes: seven short texts, which have 256 bytes each beside their own."""


def rejection(text: str, condition: str = "app:bad") -> Outcome:
    return Outcome(OutcomeKind.REJECTED, condition=condition, description=text)


def modification(value: int) -> Outcome:
    return Outcome(OutcomeKind.MODIFIED, delivery_failed=True, annotations=((b"\xa3\x01a", bytes((0x50, value))),))


def a_rig(limit: int = LIMIT) -> Rig:
    rig = Rig(config=EngineConfig(outcome_annotations_bytes_max=limit))
    declare(rig, "dead")
    declare(rig, "q", dead_letter="dead")
    return rig


def settle(rig: Rig, name: str, *outcomes: Outcome, count: int = 1) -> None:
    """Settle as many messages of a queue with each outcome, each in an event of its own."""
    consumer = rig.consumer(name)
    for outcome in outcomes:
        rig.loop.set_credit(consumer, count)
        rig.do()
        rig.do(Settle(consumer, rig.queue(name).held_by(consumer).to_bytes(), outcome))
    rig.loop.set_credit(consumer, 0)


def described(rig: Rig, name: str = "dead") -> list[str]:
    """Return the descriptions of the dead letters, in order."""
    marks = [entry.marks for _, entry in sorted(rig.queue(name).entries.items())]
    return [one.description for one in marks if one is not None]


def outcomes_of(rig: Rig) -> list[Outcome]:
    """Return the outcomes that the log has, in order."""
    rig.loop.make_due()
    rig.do()
    events, first, end = list[Event](), -1, 0
    while first != end:
        first = end
        some, end = rig.loop.replay(first).read(events_max=1000, bytes_max=1 << 20)
        events += some
    return [event.outcome for event in events if type(event) is Settled]


def is_exact(state: State) -> bool:
    """Return whether the tables say what the columns hold, and the state how much that is."""
    for queue in state.queues.values():
        counts = Counter(value for entry in queue.entries.values() for value in values_of(entry))
        assert {value: count for value, (_, count) in queue.outcome_annotations.known.items()} == counts
        assert queue.outcome_annotations.size == sum(map(cost_of, counts))
        held = [value for entry in queue.entries.values() for value in values_of(entry)]
        assert len({id(value) for value in held}) == len(counts)
    return state.outcome_annotations_bytes == sum(one.outcome_annotations.size for one in state.queues.values())


def test_beyond_the_limit_the_condition_stays() -> None:
    """Reason, source, time and count stay too, and the event says no more than the state has."""
    rig = a_rig(2 * LIMIT)
    rig.do(rig.publish(rig.producer("q"), *[b"m"] * 20))
    settle(rig, "q", *[rejection(f"message {number:02}") for number in range(20)])
    texts = [f"app:bad: message {number:02}" for number in range(15)] + ["app:bad"] * 5
    assert described(rig) == texts
    assert rig.loop.state.outcome_annotations_bytes == sum(map(cost_of, set(texts))) <= 2 * LIMIT
    marks = [entry.marks for entry in rig.queue("dead").entries.values()]
    assert {one and (one.reason, one.source, one.count, one.time_us > 0) for one in marks} == {
        (MoveReason.REJECTED, "q", 1, True)
    }
    assert outcomes_of(rig)[14:16] == [rejection("message 14"), rejection("")]
    assert is_exact(rig.loop.state)


def test_at_the_maximum_a_further_condition_is_left_out() -> None:
    """One that is known needs no room, nor does an equal text."""
    rig = a_rig()
    rig.do(rig.publish(rig.producer("q"), *[b"m"] * 12))
    settle(rig, "q", *[rejection("", f"app:bad-{number}") for number in range(12)])
    assert described(rig) == [f"app:bad-{number}" for number in range(9)] + [""] * 3
    assert rig.loop.state.outcome_annotations_bytes <= LIMIT


def test_room_is_there_again_when_dead_letters_leave() -> None:
    """They are accepted, purged, or their queue is deleted."""
    rig = a_rig()
    for end in ("accept", "purge", "delete", "again"):
        rig.do(rig.publish(rig.producer("q"), *[b"m"] * 8))
        settle(rig, "q", *[rejection(f"{end} {number}") for number in range(8)])
        assert described(rig)[-2:] == [f"app:bad: {end} 6", "app:bad"]
        if end == "accept":
            settle(rig, "dead", ACCEPTED, count=8)
        elif end == "purge":
            rig.do(PurgeQueue("key", "dead"))
        else:
            rig.do(DeleteQueue("key", "dead"))
            declare(rig, "dead")
        assert rig.loop.state.outcome_annotations_bytes == 0


def test_without_a_target_a_text_stays_in_the_event() -> None:
    """No state holds it."""
    rig = Rig(config=EngineConfig(outcome_annotations_bytes_max=0))
    rig.do(rig.publish(rig.producer("q"), b"m"))
    settle(rig, "q", rejection("no such customer"))
    assert outcomes_of(rig) == [rejection("no such customer")]


def test_annotations_of_modified_are_left_out_beyond_the_limit() -> None:
    """The delivery has failed all the same."""
    rig = a_rig()
    rig.do(rig.publish(rig.producer("q"), *[b"m"] * 8))
    consumer = rig.consumer("q", credit=8)
    rig.do()
    for number, word in enumerate(rig.queue("q").held_by(consumer)):
        rig.loop.set_credit(consumer, 0)
        rig.do(Settle(consumer, pack_words([word]), modification(number)))
    entries = [entry for _, entry in sorted(rig.queue("q").entries.items())]
    assert [entry.count for entry in entries] == [1] * 8
    assert [bool(entry.annotations) for entry in entries] == [True] * 5 + [False] * 3
    assert is_exact(rig.loop.state)
    settle(rig, "q", modification(0), count=1)
    assert all(is_exact(one) for one in (rig.loop.state, state_of(image_of(rig.loop.state))))


def test_a_request_obeys_the_limit() -> None:
    """A receiver without a link says its outcomes by a request, each consumer's in an event of its own."""
    rig = a_rig()
    rig.do(rig.publish(rig.producer("q"), *[b"m"] * 2))
    consumers = [rig.consumer("q") for _ in range(2)]
    for one in consumers:
        rig.loop.set_credit(one, 1)
    rig.do()
    deliveries = [(word, 0) for one in consumers for word in rig.queue("q").held_by(one)]
    rig.do(SettleNamed("key", "q", deliveries, rejection("x" * 5000), frozenset(consumers)))
    assert [len(text) for text in described(rig)] == [1024, 1024]


@pytest.mark.parametrize("limit", [0, 300, 600])
def test_a_limit_of_any_size_is_kept(limit: int) -> None:
    """Also one that no text fits into."""
    rig = Rig(config=EngineConfig(outcome_annotations_bytes_max=limit))
    declare(rig, "dead")
    declare(rig, "q", dead_letter="dead")
    rig.do(rig.publish(rig.producer("q"), *[b"m"] * 4))
    settle(rig, "q", rejection("a"), rejection("b"), modification(1), rejection("c" * 900))
    assert rig.loop.state.outcome_annotations_bytes <= limit


_OUTCOMES = st.one_of(
    st.builds(rejection, st.sampled_from("abcdefghij"), st.sampled_from(("app:bad", "app:late"))),
    st.builds(modification, st.integers(0, 9)),
    st.sampled_from((ACCEPTED, RELEASED)),
)
_STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("publish"), st.sampled_from("ab"), st.integers(1, 4)),
        st.tuples(st.just("settle"), st.sampled_from(("a", "b", "dead")), _OUTCOMES),
        st.tuples(st.just("settle"), st.sampled_from("ab"), _OUTCOMES),
        st.tuples(st.just("max"), st.just("dead"), st.integers(0, 3)),
        st.tuples(st.just("move"), st.sampled_from(("a", "dead")), st.sampled_from(("", "b", "copy"))),
        st.tuples(st.sampled_from(("purge", "delete", "restart")), st.sampled_from(("a", "dead")), st.none()),
    ),
    max_size=25,
)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(steps=_STEPS)
def test_what_is_held_is_known_exactly(steps: list[tuple[str, str, object]]) -> None:
    """It is what the columns say, after each step, a fold of the log without the limit, and a snapshot.

    It exceeds the limit only by copies, which count on each queue.
    """
    config, rig, has_copies = EngineConfig(outcome_annotations_bytes_max=LIMIT), a_rig(), False
    for name in "ab":
        declare(rig, name, dead_letter="dead")
    for step, name, what in steps:
        queue = rig.loop.state.queue_named(name)
        if queue is None:
            declare(rig, name)
        elif step == "publish" and isinstance(what, int):
            rig.do(rig.publish(rig.producer(name), *[b"m"] * what))
        elif step == "settle" and isinstance(what, Outcome):
            settle(rig, name, what, count=2)
        elif step == "max":
            rig.do(UpdateQueue("key", name, lambda _state: {}, {"messages_max": what}))
        elif step == "move":
            offsets = [word >> 16 for one in queue.available_lists for word in one]
            has_copies |= what == "copy"
            reason = MoveReason.COPIED if what == "copy" else MoveReason.MOVED if what else MoveReason.REDRIVEN
            rig.do(MoveMessages("key", name, offsets[:2], "b" if what else "", reason))
        elif step == "purge":
            rig.do(PurgeQueue("key", name))
        elif step == "delete":
            rig.do(DeleteQueue("key", name))
        elif step == "restart":
            rig.loop.make_due()
            rig.do()
            live = rig.loop.state
            rig.kill()
            rig = Rig(rig.storage, config=config, now_us=rig.now_us)
            assert rig.recovered == live
        state = rig.loop.state
        assert is_exact(state)
        assert has_copies or state.outcome_annotations_bytes <= LIMIT
    assert state_of(image_of(rig.loop.state)) == rig.loop.state
    assert is_exact(state_of(image_of(rig.loop.state)))
