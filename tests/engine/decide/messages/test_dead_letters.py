"""Dead letters: where they go, what they say, and what never happens to them."""

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ambermq.engine.commands import (
    AttachMember,
    DeclareMuxer,
    DeclareQueue,
    DeleteQueue,
    GiveUp,
    PurgeQueue,
    Settle,
    UpdateQueue,
)
from ambermq.engine.config import EngineConfig
from ambermq.engine.effects import PublishDone
from ambermq.engine.entries.discard_reason import DiscardReason, MoveReason
from ambermq.engine.entries.entry_word import pack_words
from ambermq.engine.entries.marks import DESCRIPTION_BYTES_MAX
from ambermq.engine.entries.outcome import MODIFIED_FAILED, RELEASED, Outcome, OutcomeKind
from ambermq.engine.events import Discarded, Moved, SetAside
from ambermq.engine.model.muxer import MuxerKind
from ambermq.engine.settings.queue_settings import DEAD_LETTER, DROP_HEAD, Settings
from tests.engine.rig import Rig, delivered

REJECTED_FOR = Outcome(OutcomeKind.REJECTED, condition="app:bad", description="no such customer")


def declare(rig: Rig, name: str, **values: object) -> None:
    """Declare a queue with settings."""
    rig.do(DeclareQueue("key", name, Settings().with_values(values)))  # type: ignore[arg-type]


def rejected(rig: Rig, name: str, *bodies: bytes, outcome: Outcome = REJECTED_FOR) -> None:
    """Publish messages to a queue, and settle each with an outcome."""
    producer, consumer = rig.producer(name), rig.consumer(name, credit=len(bodies))
    rig.do(rig.publish(producer, *bodies))
    words = list(rig.queue(name).held_by(consumer))
    rig.do(Settle(consumer, pack_words(words), outcome))
    rig.loop.set_credit(consumer, 0)


def again(rig: Rig) -> Rig:
    """Write what waits, and return the life after a SIGKILL; it has folded what this one has lived."""
    rig.loop.make_due()
    rig.do()
    return rig.next_life(rig.now_us)


def bodies_of(rig: Rig, name: str) -> list[bytes]:
    """Return the messages that a consumer of a queue gets, in order."""
    effects = rig.do()
    consumer = rig.consumer(name, credit=1000)
    effects += rig.do()
    return [body for one, body in delivered(effects) if one == consumer]


@pytest.fixture
def rig() -> Iterator[Rig]:
    rig = Rig()
    declare(rig, "dead")
    yield rig
    assert again(rig).recovered.epoch


def test_a_rejected_message_goes_to_the_target_with_its_reason(rig: Rig) -> None:
    """It has a new place there, and its old body."""
    declare(rig, "q", dead_letter="dead")
    rejected(rig, "q", b"a", b"b")
    assert rig.queue("q").depth == 0
    assert rig.queue("q").counters.dead_lettered == 2
    marks = [entry.marks for _, entry in sorted(rig.queue("dead").entries.items())]
    assert [one and (one.reason, one.source, one.description, one.count) for one in marks] == [
        (MoveReason.REJECTED, "q", "app:bad: no such customer", 1)
    ] * 2
    assert bodies_of(rig, "dead") == [b"a", b"b"]


def test_a_long_error_is_cut(rig: Rig) -> None:
    """The description has a maximum, and never half a character."""
    declare(rig, "q", dead_letter="dead")
    rejected(rig, "q", b"a", outcome=Outcome(OutcomeKind.REJECTED, description="\u00e9" * 2000))
    (entry,) = rig.queue("dead").entries.values()
    assert entry.marks is not None
    assert entry.marks.description == "\u00e9" * (DESCRIPTION_BYTES_MAX // 2)


def test_failed_deliveries_lead_to_the_target_at_the_maximum(rig: Rig) -> None:
    """Released ones do not count; the message has no failed delivery there."""
    declare(rig, "q", dead_letter="dead", delivery_count_max=2)
    producer, consumer = rig.producer("q"), rig.consumer("q", credit=10)
    rig.do(rig.publish(producer, b"m"))
    for outcome, depth in ((RELEASED, 1), (MODIFIED_FAILED, 1), (MODIFIED_FAILED, 0)):
        rig.do(Settle(consumer, rig.queue("q").held_by(consumer).to_bytes(), outcome))
        assert rig.queue("q").depth == depth
    (entry,) = rig.queue("dead").entries.values()
    assert entry.count == 0
    assert entry.marks is not None
    assert entry.marks.reason is MoveReason.DELIVERY_COUNT


def test_without_a_target_a_message_ends(rig: Rig) -> None:
    """By its outcome, or by an event with the reason."""
    declare(rig, "q", delivery_count_max=1)
    rejected(rig, "q", b"a")
    assert rig.queue("q").counters.rejected == 1
    rejected(rig, "q", b"b", outcome=MODIFIED_FAILED)
    assert rig.queue("q").counters.discarded == 1
    assert rig.queue("q").depth == 0


def test_what_has_no_target_now_waits_beside_its_queue() -> None:
    """The target was deleted; when it is back, the messages go there by themselves."""
    rig = Rig()
    declare(rig, "q", dead_letter="dead", delivery_count_max=1)
    rig.do(DeleteQueue("key", "dead"))
    rejected(rig, "q", b"a")
    rejected(rig, "q", b"b", outcome=MODIFIED_FAILED)
    queue = rig.queue("q")
    assert (queue.available, queue.waiting, queue.depth, queue.aside.count) == (0, 2, 2, 2)
    assert bodies_of(rig, "q") == []
    rig = again(rig)
    declare(rig, "dead")
    rig.now_us += 1_000_000
    rig.do()
    assert rig.queue("q").depth == 0
    assert bodies_of(rig, "dead") == [b"a", b"b"]


def test_a_full_target_takes_the_rest_when_it_has_room(rig: Rig) -> None:
    """No message is lost, and the first come first."""
    declare(rig, "q", dead_letter="dead")
    rig.do(UpdateQueue("key", "dead", lambda _state: {}, {"messages_max": 2}))
    rejected(rig, "q", b"a", b"b", b"c")
    assert (rig.queue("q").aside.count, rig.queue("dead").available) == (1, 2)
    rig.do(PurgeQueue("key", "dead"))
    rig.now_us += 1_000_000
    rig.do()
    assert (rig.queue("q").depth, bodies_of(rig, "dead")) == (0, [b"c"])


def test_a_target_that_drops_its_head_makes_room(rig: Rig) -> None:
    """It keeps the newest dead letters."""
    declare(rig, "q", dead_letter="dead")
    rig.do(UpdateQueue("key", "dead", lambda _state: {}, {"messages_max": 2, "overflow": DROP_HEAD}))
    rejected(rig, "q", b"a", b"b")
    rejected(rig, "q", b"c")
    assert bodies_of(rig, "dead") == [b"b", b"c"]


def test_a_target_that_is_taken_away_ends_what_was_set_aside(rig: Rig) -> None:
    """By an event with the reason for which each was set aside."""
    declare(rig, "q", dead_letter="dead")
    rig.do(DeleteQueue("key", "dead"))
    rejected(rig, "q", b"a")
    rig.do(UpdateQueue("key", "q", lambda _state: {}, {"dead_letter": "none"}))
    rig.now_us += 1_000_000
    rig.do()
    assert rig.queue("q").depth == 0
    assert rig.queue("q").counters.discarded == 1
    declare(rig, "dead")


def test_a_muxer_routes_dead_letters(rig: Rig) -> None:
    """To each of its queues, but never back to the source."""
    rig.do(DeclareMuxer("key", "all", MuxerKind.SIMPLE))
    declare(rig, "other")
    declare(rig, "q", dead_letter="/muxers/all")
    for member in ("dead", "other", "q"):
        rig.do(AttachMember("key", "all", member))
    rejected(rig, "q", b"a", b"b")
    assert [bodies_of(rig, name) for name in ("q", "dead", "other")] == [[], [b"a", b"b"], [b"a", b"b"]]


def test_a_cycle_of_overflows_ends(rig: Rig) -> None:
    """A to B to A: the message that comes back for the same reason ends with the reason `loop`."""
    declare(rig, "a", messages_max=1, overflow=DEAD_LETTER)
    declare(rig, "b", messages_max=1, overflow=DEAD_LETTER, dead_letter="a")
    rig.do(UpdateQueue("key", "a", lambda _state: {}, {"dead_letter": "b"}))
    producers = [rig.producer(name) for name in ("a", "b")]
    for number in range(20):
        rig.do(rig.publish(producers[number % 2], b"%d" % number))
    assert [rig.queue(name).depth for name in ("a", "b")] == [1, 1]


def test_a_message_moves_at_most_so_often() -> None:
    """Consumers that reject it for ever do not keep it alive for ever."""
    rig = Rig(config=EngineConfig(dead_letter_moves_max=3))
    declare(rig, "b")
    declare(rig, "a", dead_letter="b")
    rig.do(UpdateQueue("key", "b", lambda _state: {}, {"dead_letter": "a"}))
    consumers = {name: rig.consumer(name, credit=100) for name in ("a", "b")}
    rig.do(rig.publish(rig.producer("a"), b"m"))
    seen = []
    for turn in range(6):
        name = "ab"[turn % 2]
        words = rig.queue(name).held_by(consumers[name]).to_bytes()
        seen.append(len(words) // 8)
        rig.do(Settle(consumers[name], words, REJECTED_FOR))
    assert seen == [1, 1, 1, 1, 0, 0]
    assert rig.queue("b").counters.discarded == 1
    assert rig.loop.take_looped() == [("b", 1)]
    assert rig.loop.take_looped() == []


def test_a_report_of_loops_names_a_few_queues() -> None:
    """And counts the others together."""
    rig = Rig(config=EngineConfig(dead_letter_moves_max=1))
    for number in range(14):
        first, second = f"a{number}", f"b{number}"
        declare(rig, first)
        declare(rig, second, dead_letter=first)
        rig.do(UpdateQueue("key", first, lambda _state: {}, {"dead_letter": second}))
        consumer = rig.consumer(second, credit=1)
        rejected(rig, first, b"m")
        rig.do(Settle(consumer, rig.queue(second).held_by(consumer).to_bytes(), REJECTED_FOR))
    looped = rig.loop.take_looped()
    assert len(looped) == 11
    assert dict(looped)[""] == 4
    assert sum(count for _, count in looped) == 14


def test_an_overflow_moves_the_oldest_messages(rig: Rig) -> None:
    """The newest stay; a target without room refuses the publish."""
    declare(rig, "q", messages_max=2, overflow=DEAD_LETTER, dead_letter="dead")
    rig.do(UpdateQueue("key", "dead", lambda _state: {}, {"messages_max": 2}))
    done = rig.do(rig.publish(rig.producer("q"), b"a", b"b", b"c", b"d", b"e", b"f"))
    outcomes = [(one.kind, one.count) for one in done if type(one) is PublishDone]
    assert sum(count for kind, count in outcomes if kind is OutcomeKind.ACCEPTED) == 4
    assert sum(count for kind, count in outcomes if kind is OutcomeKind.REJECTED) == 2
    assert [bodies_of(rig, name) for name in ("q", "dead")] == [[b"c", b"d"], [b"a", b"b"]]


def test_without_a_target_that_overflow_refuses(rig: Rig) -> None:
    """As `reject` does."""
    declare(rig, "q", messages_max=1, overflow=DEAD_LETTER)
    done = rig.do(rig.publish(rig.producer("q"), b"a", b"b"))
    outcomes = {one.first_id: one.kind for one in done if type(one) is PublishDone}
    assert outcomes == {0: OutcomeKind.ACCEPTED, 1: OutcomeKind.REJECTED}


_OUTCOMES = (REJECTED_FOR, MODIFIED_FAILED, RELEASED)
_STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("publish"), st.sampled_from("abc"), st.integers(1, 5)),
        st.tuples(
            st.just("settle"), st.sampled_from("abc"), st.sampled_from((REJECTED_FOR, MODIFIED_FAILED, RELEASED))
        ),
        st.tuples(st.just("max"), st.sampled_from("abc"), st.integers(0, 4)),
        st.tuples(st.just("target"), st.sampled_from("abc"), st.sampled_from(("none", "a", "b", "c"))),
        st.tuples(st.just("policy"), st.sampled_from("abc"), st.sampled_from(("reject", DROP_HEAD, DEAD_LETTER))),
        st.tuples(st.just("purge"), st.sampled_from("abc"), st.just(0)),
        st.tuples(st.just("wait"), st.just("a"), st.just(0)),
        st.tuples(st.just("restart"), st.just("a"), st.just(0)),
    ),
    max_size=25,
)


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(steps=_STEPS)
def test_every_message_is_somewhere_or_has_ended_for_a_reason(steps: list[tuple[str, str, object]]) -> None:
    """Whatever the targets, maxima and outcomes: what came to a queue is there, was accepted, or left it counted."""
    rig = Rig(config=EngineConfig(dead_letter_moves_max=5, dispatch_messages_max=3))
    for name in "abc":
        declare(rig, name, delivery_count_max=2)
    for step, name, what in steps:
        if step == "publish":
            assert isinstance(what, int)
            rig.do(rig.publish(rig.producer(name), *[b"m"] * what))
        elif step == "settle":
            assert isinstance(what, Outcome)
            consumer = rig.consumer(name, credit=3)
            rig.do()
            rig.do(Settle(consumer, rig.queue(name).held_by(consumer).to_bytes(), what))
            rig.loop.set_credit(consumer, 0)
        elif step == "purge":
            rig.do(PurgeQueue("key", name))
        elif step == "wait":
            rig.now_us += 2_000_000
            rig.do()
        elif step == "restart":
            rig = again(rig)
        else:
            key = {"max": "messages_max", "target": "dead_letter", "policy": "overflow"}[step]
            rig.do(UpdateQueue("key", name, lambda _state: {}, {key: what}))
        for one in rig.loop.state.queues.values():
            counters = one.counters
            gone = counters.rejected + counters.purged + counters.discarded + counters.dead_lettered + one.accepted
            assert one.published == one.depth + gone + counters.damaged + counters.moved
            assert all(one.holds(word) for word in one.aside)
            assert len(one.entries) <= one.depth


def test_the_events_name_reasons(rig: Rig) -> None:
    """Each is read back from the log as it was written."""
    declare(rig, "q", dead_letter="dead")
    rejected(rig, "q", b"a")
    rig.do(DeleteQueue("key", "dead"))
    rejected(rig, "q", b"b", outcome=REJECTED_FOR)
    declare(rig, "r", dead_letter="gone", delivery_count_max=1)
    rig.do(DeleteQueue("key", "gone"))
    rejected(rig, "r", b"c", outcome=MODIFIED_FAILED)
    rig.loop.make_due()
    rig.do()
    events, _ = rig.loop.replay(0).read(events_max=1000, bytes_max=1 << 20)
    found = [event for event in events if isinstance(event, Moved | SetAside | Discarded)]
    assert [(type(event), event.reason) for event in found] == [
        (Moved, MoveReason.REJECTED),
        (SetAside, MoveReason.REJECTED),
        (SetAside, MoveReason.DELIVERY_COUNT),
    ]
    assert DiscardReason.LOOP.text == "loop"
    declare(rig, "dead")


def test_set_aside_messages_make_no_room(rig: Rig) -> None:
    """A queue that drops its head refuses what the messages beside it leave no room for."""
    declare(rig, "q", messages_max=2, overflow=DROP_HEAD, dead_letter="gone")
    rig.do(DeleteQueue("key", "gone"))
    rejected(rig, "q", b"a", b"b")
    rig.do()
    assert (rig.queue("q").aside.count, rig.queue("q").available) == (2, 0)
    done = rig.do(rig.publish(rig.producer("q"), b"c", b"d"))
    assert {one.kind for one in done if type(one) is PublishDone} == {OutcomeKind.REJECTED}
    assert rig.queue("q").waiting == 2


def test_a_tick_tries_a_limited_number_again() -> None:
    """Whatever the number of queues: the others follow in the next ticks, and then all rest for a while."""
    rig = Rig(config=EngineConfig(dispatch_messages_max=4))
    for number in range(6):
        declare(rig, f"q{number}", dead_letter="gone")
        rig.do(DeleteQueue("key", "gone"))
        rejected(rig, f"q{number}", b"a", b"b", b"c")
        rig.loop.make_due()
        rig.do()
    declare(rig, "gone")
    rig.now_us += 2_000_000
    counts = []
    while rig.loop.schedule.timer_us <= rig.now_us:
        before = rig.queue("gone").depth
        rig.step()
        rig.completed()
        counts.append(rig.queue("gone").depth - before)
    assert sum(counts) in range(12, 19)
    assert max(counts) <= 4
    for _ in range(20):
        rig.now_us += 2_000_000
        rig.do()
    assert (rig.queue("gone").depth, rig.loop.schedule.timer_us > 1 << 60) == (18, True)


def test_a_message_that_is_found_twice_is_given_up_once() -> None:
    """Two consumers with selectors may find the same expired message in one dispatch."""
    rig = Rig()
    declare(rig, "dead")
    declare(rig, "q", dead_letter="dead")
    rig.do(rig.publish(rig.producer(), b"a"))
    (word,) = rig.queue().ready
    rig.do(GiveUp(rig.queue().id, pack_words([word, word]), MoveReason.EXPIRED))
    rig.loop.log.write(rig.now_us)
    assert (rig.queue().depth, rig.queue("dead").depth) == (0, 1)
    rig.next_life()
