"""Single messages of a queue: found by what the broker knows of them, moved, copied, redriven and removed."""

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ambermq.engine.commands import (
    DeleteQueue,
    FindMessages,
    MessageFilter,
    MoveMessages,
    RemoveMessages,
    Settle,
    UpdateQueue,
)
from ambermq.engine.effects import Answered, RefusedCommand
from ambermq.engine.entries.discard_reason import MoveReason
from ambermq.engine.entries.entry_word import entry_of, pack_words
from ambermq.engine.errors import Refused
from ambermq.engine.events import Moved
from ambermq.engine.selectors.fields import ABSENT
from ambermq.engine.selectors.selector import parse_selector
from tests.engine.decide.messages.test_dead_letters import REJECTED_FOR, again, bodies_of, declare, rejected
from tests.engine.rig import COLD, Rig
from tests.log.simulated import SimulatedStorage


class Fields:
    """A message whose body is its message-id and its subject."""

    def __init__(self, body: bytes) -> None:
        self._values = {"properties.message-id": bytes(body).decode(), "properties.subject": bytes(body).decode()}

    def get(self, name: str) -> object:
        return self._values.get(name, ABSENT)


def rig_with(*bodies: bytes, name: str = "q") -> Rig:
    """Return a broker with messages on a queue, and an empty one."""
    rig = Rig(fields_of=lambda body, _added=(): Fields(bytes(body)))  # type: ignore[arg-type]
    declare(rig, "q")
    declare(rig, "other")
    if bodies:
        rig.do(rig.publish(rig.producer(name), *bodies))
    return rig


def ask(rig: Rig, command: Any) -> Any:
    """Return the answer to a command, or the condition of its refusal."""
    (answer,) = rig.do(command)
    return answer.value if type(answer) is Answered else answer.condition


def offsets(rig: Rig, name: str = "q") -> list[int]:
    """Return the messages that wait on a queue."""
    return [entry_of(word) for word in sorted([*rig.queue(name).ready, *rig.queue(name).returned])]


def find(rig: Rig, name: str = "q", **values: Any) -> list[dict[str, Any]]:
    """Find messages, page by page, as a client does."""
    found: list[dict[str, Any]] = []
    after = -1
    while True:
        answer = ask(rig, FindMessages("key", name, after=after, **values))
        found += answer["messages"]
        if answer["is_end"]:
            return found
        after = answer["next"]


def test_messages_move_to_the_tail_in_their_order() -> None:
    """They leave the source at the same moment; the others stay."""
    rig = rig_with(b"a", b"b", b"c")
    rig.do(rig.publish(rig.producer("other"), b"x"))
    first, _, third = offsets(rig)
    answer = ask(rig, MoveMessages("key", "q", [third, first], "other", by="alice"))
    assert answer == {"moved": 2, "acquired": 0, "gone": 0, "no_room": 0, "no_origin": 0, "to": ["other"]}
    rig = again(rig)
    assert bodies_of(rig, "q") == [b"b"]
    assert bodies_of(rig, "other") == [b"x", b"c", b"a"]


def test_a_copy_leaves_the_message_where_it_is() -> None:
    """Each is settled by itself, and both have the same bytes."""
    rig = rig_with(b"a", b"b")
    assert ask(rig, MoveMessages("key", "q", offsets(rig), "other", MoveReason.COPIED))["moved"] == 2
    rig = again(rig)
    assert bodies_of(rig, "q") == bodies_of(rig, "other") == [b"a", b"b"]
    assert rig.queue("q").counters.moved == 0


def test_what_is_acquired_or_gone_is_counted() -> None:
    """It stays where it is."""
    rig = rig_with(b"a", b"b", b"c")
    one, two, three = offsets(rig)
    consumer = rig.consumer("q", credit=2)
    rig.do()
    rig.do(Settle(consumer, pack_words([next(iter(rig.queue().held_by(consumer)))]), REJECTED_FOR))
    answer = ask(rig, MoveMessages("key", "q", [one, two, three, three, 1 << 50, -1], "other"))
    assert answer == {"moved": 1, "acquired": 1, "gone": 3, "no_room": 0, "no_origin": 0, "to": ["other"]}


def test_a_full_target_takes_the_first_ones() -> None:
    """The others stay, and are counted."""
    rig = rig_with(b"a", b"b", b"c")
    rig.do(UpdateQueue("key", "other", lambda _state: {}, {"messages_max": 2}))
    answer = ask(rig, MoveMessages("key", "q", offsets(rig), "other"))
    assert (answer["moved"], answer["no_room"]) == (2, 1)
    assert bodies_of(rig, "q") == [b"c"]


@pytest.mark.parametrize(
    ("name", "to", "condition"),
    [
        ("none", "other", "amqp:not-found"),
        ("q", "none", "amqp:not-found"),
        ("q", "q", "amqp:invalid-field"),
        ("q", "/topics/t", "amqp:not-found"),
    ],
)
def test_a_bad_address_is_refused(name: str, to: str, condition: str) -> None:
    """Nothing moves."""
    rig = rig_with(b"a")
    assert ask(rig, MoveMessages("key", name, offsets(rig), to)) == condition
    assert rig.queue("q").depth == 1


def test_too_many_messages_are_refused() -> None:
    """A command has a bounded size."""
    rig = rig_with(b"a")
    assert ask(rig, MoveMessages("key", "q", list(range(1001)), "other")) == "amqp:invalid-field"
    assert ask(rig, RemoveMessages("key", "q", list(range(1001)))) == "amqp:invalid-field"


def test_a_redriven_message_goes_back_to_where_it_came_from() -> None:
    """By the identity of the queue, else by its name; it says how often, and has no failed delivery."""
    rig = rig_with()
    declare(rig, "dead")
    declare(rig, "a", dead_letter="dead")
    declare(rig, "b", dead_letter="dead")
    rejected(rig, "a", b"1")
    rejected(rig, "b", b"2")
    rig.do()
    for turn in (1, 2):
        answer = ask(rig, MoveMessages("key", "dead", offsets(rig, "dead"), reason=MoveReason.REDRIVEN))
        assert (answer["moved"], answer["to"]) == (2, ["a", "b"])
        for name in ("a", "b"):
            (entry,) = rig.queue(name).entries.values()
            assert entry.marks is not None
            assert (entry.count, entry.marks.redrives, entry.marks.moves, entry.marks.count) == (0, turn, 0, turn)
            consumer = rig.consumer(name, credit=1)
            rig.do()
            rig.do(Settle(consumer, rig.queue(name).held_by(consumer).to_bytes(), REJECTED_FOR))
            rig.loop.set_credit(consumer, 0)
    rig = again(rig)
    assert bodies_of(rig, "dead") == [b"1", b"2"]


def test_what_never_was_a_dead_letter_has_no_origin() -> None:
    """It stays, unless a queue is named."""
    rig = rig_with(b"a")
    answer = ask(rig, MoveMessages("key", "q", offsets(rig), reason=MoveReason.REDRIVEN))
    assert (answer["moved"], answer["no_origin"]) == (0, 1)
    assert ask(rig, MoveMessages("key", "q", offsets(rig), "other", MoveReason.REDRIVEN))["moved"] == 1


def test_the_rules_decide_about_each_target() -> None:
    """Without the right nothing moves."""

    def never(name: str) -> None:
        raise Refused("amqp:unauthorized-access", name)

    rig = rig_with(b"a")
    (answer,) = rig.do(MoveMessages("key", "q", offsets(rig), "other", authorize=never))
    assert isinstance(answer, RefusedCommand)
    assert (answer.condition, answer.description) == ("amqp:unauthorized-access", "other")
    assert rig.queue("q").depth == 1


@settings(max_examples=15)
@given(
    st.lists(st.sampled_from(["a", "b", "gone", ""]), min_size=1, max_size=8),
    st.integers(0, 3),
    st.sampled_from([0, 40, 90]),
    st.sampled_from(["", "other"]),
    st.sampled_from([MoveReason.MOVED, MoveReason.COPIED, MoveReason.REDRIVEN]),
    st.integers(1, 4),
)
def test_a_dry_run_says_what_the_command_does(
    origins: list[str], messages_max: int, bytes_max: int, to: str, reason: MoveReason, page: int
) -> None:
    """Request by request, with targets that fill and origins that are gone; and it changes nothing."""
    rig = rig_with()
    declare(rig, "dead")
    for name in ("a", "b", "gone"):
        declare(rig, name, dead_letter="dead")
    for number, name in enumerate(origins):
        if name:
            rejected(rig, name, b"x" * (10 + 20 * (number % 3)))
        else:
            rig.do(rig.publish(rig.producer("dead"), b"stranger"))
    for name in ("a", "other"):
        values = {"messages_max": messages_max, "bytes_max": bytes_max}
        rig.do(UpdateQueue("key", name, lambda _state: {}, {key: one for key, one in values.items() if one}))
    rig.do(DeleteQueue("key", "gone"))
    named = [*offsets(rig, "dead"), 1 << 40]
    pages = [named[start : start + page] for start in range(0, len(named), page)]
    to = to if reason is MoveReason.REDRIVEN else "other"
    before, taken, dry = rig.loop.state, b"", []
    for some in pages:
        answer = ask(rig, MoveMessages("key", "dead", some, to, reason, dry_run=taken))
        taken = answer.pop("taken")
        assert sum(answer.pop("targets").values()) == answer["moved"]
        dry.append(answer)
    assert rig.loop.state.queues == before.queues
    assert dry == [ask(rig, MoveMessages("key", "dead", some, to, reason)) for some in pages]


def test_what_a_client_claims_of_a_dry_run_is_bounded() -> None:
    """A number too large for the answer counts as the largest; a queue that is absent counts for nothing."""
    rig = rig_with(b"a", b"b")
    claimed = b"".join([*(((1 << 64) - 1).to_bytes(8, "little") for _ in range(3)), bytes(24)])
    other = rig.queue("other").id.to_bytes(8, "little") + claimed[:16]
    answer = ask(rig, MoveMessages("key", "q", offsets(rig), "other", dry_run=claimed + 2 * other))
    assert (answer["moved"], answer["no_room"], len(answer["taken"])) == (0, 2, 72)


def test_messages_are_found_by_their_marks_and_by_a_selector() -> None:
    """With what the broker knows of each."""
    rig = rig_with()
    declare(rig, "dead")
    declare(rig, "a", dead_letter="dead")
    declare(rig, "b", dead_letter="dead", delivery_count_max=1)
    rejected(rig, "a", b"1", b"2")
    rig.now_us += 5
    rejected(rig, "b", b"3")
    rig.do(rig.publish(rig.producer("dead"), b"4"))
    assert [one["source"] for one in find(rig, "dead") if "source" in one] == ["a", "a", "b"]
    wanted = {
        "reason": MessageFilter(reason="rejected"),
        "source": MessageFilter(source="b"),
        "since": MessageFilter(since_us=rig.now_us),
        "selector": MessageFilter(selector=parse_selector("properties.subject IN ('1', '4')")),
        "both": MessageFilter(source="a", selector=parse_selector("properties.subject = '2'")),
    }
    found = {
        key: [one["message_id"] for one in find(rig, "dead", filter=one, reads_messages=True)]
        for key, one in wanted.items()
    }
    assert found == {"reason": ["1", "2", "3"], "source": ["3"], "since": ["3"], "selector": ["1", "4"], "both": ["2"]}


def test_any_offset_may_be_named() -> None:
    """However large: nothing is there."""
    rig = rig_with(b"a")
    for offset in (1 << 47, (1 << 63) - 1):
        assert ask(rig, FindMessages("key", "q", after=offset))["is_end"]
        assert ask(rig, MoveMessages("key", "q", [offset], "other"))["gone"] == 1


def test_many_requests_are_spread_over_ticks() -> None:
    """Each looks at thousands of messages."""
    rig = rig_with(*[b"m"] * 50)
    for _ in range(20):
        rig.loop.submit(FindMessages("key", "q"))
    assert len(rig.step()) < 4


def test_a_search_goes_on_while_messages_are_read() -> None:
    """The client asks again, and finds each message once."""
    rig = Rig(fields_of=lambda body, _added=(): Fields(bytes(body)), log_config=COLD)  # type: ignore[arg-type]
    declare(rig, "q")
    rig.do(rig.publish(rig.producer("q"), *[b"%d" % number for number in range(700)]))
    rig.forget_pages()
    found = find(rig, filter=MessageFilter(selector=parse_selector("properties.subject LIKE '%7'")))
    assert [one["message_id"] for one in found] == [str(number) for number in range(700) if number % 10 == 7]
    assert len(find(rig, count_max=3)) == 700


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_a_run_is_moved_as_its_messages_one_by_one(data: st.DataObject) -> None:
    """Whatever is named, in whatever order: the same queues, but for the offsets of the events."""
    count = data.draw(st.integers(0, 8))
    named = data.draw(st.lists(st.integers(0, 9), max_size=10))
    bodies = [b"%d" % number for number in range(count)]
    one, other = rig_with(*bodies), rig_with(*bodies)
    first = min(offsets(one), default=0)
    ask(one, MoveMessages("key", "q", [first + number for number in named], "other"))
    for number in named:
        ask(other, MoveMessages("key", "q", [first + number], "other"))
    for name in ("q", "other"):
        assert bodies_of(one, name) == bodies_of(other, name)


def test_removed_messages_are_counted_as_discarded() -> None:
    """With the user, in the log."""
    rig = rig_with(b"a", b"b")
    assert ask(rig, RemoveMessages("key", "q", [offsets(rig)[0], 99], by="alice")) == {
        "removed": 1,
        "acquired": 0,
        "gone": 1,
    }
    assert bodies_of(rig, "q") == [b"b"]
    assert rig.queue("q").counters.discarded == 1
    events, _ = rig.loop.replay(0).read(events_max=1000, bytes_max=1 << 20)
    assert [event.by for event in events if getattr(event, "by", "")] == ["alice"]
    assert not [event for event in events if isinstance(event, Moved)]


@pytest.mark.parametrize("seed", range(30))
def test_a_power_cut_leaves_all_moves_of_a_command_or_none(seed: int) -> None:
    """Of every request, at any moment before its answer: no message is on both queues, and none on neither."""
    rng = random.Random(seed)
    storage = SimulatedStorage(random.Random(seed))
    rig = Rig(storage)
    declare(rig, "dead")
    declare(rig, "q", dead_letter="dead")
    rig.do(rig.publish(rig.producer("dead"), *[b"%d" % number for number in range(200)]))
    answered = 0
    for start in range(0, 200, 40):
        named = offsets(rig, "dead")[:40]
        effects = rig.step(MoveMessages("key", "dead", named, "q", MoveReason.REDRIVEN))
        if rng.random() < 0.3:
            break
        effects += rig.completed()
        assert [type(one) for one in effects] == [Answered]
        answered = start + 40
    storage.crash(rng)
    rig.loop.log._workers.close()
    left = Rig(storage)
    counts = [left.queue(name).depth for name in ("q", "dead")]
    assert sum(counts) == 200
    assert counts[0] in (answered, answered + 40)
    assert [one for one in counts if one % 40] == []
    assert sorted([*bodies_of(left, "q"), *bodies_of(left, "dead")], key=int) == [b"%d" % one for one in range(200)]
