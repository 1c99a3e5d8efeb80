"""Edited copies: each takes the place of its message, or the message stays."""

from collections.abc import Iterator
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ambermq.engine.commands import EditMessages, Publish, UpdateQueue
from ambermq.engine.config import EngineConfig
from ambermq.engine.entries.discard_reason import DiscardReason
from ambermq.engine.entries.entry_word import entry_of
from ambermq.engine.entries.marks import Marks
from ambermq.engine.errors import Refused
from ambermq.engine.events import Discarded, Event, Published
from ambermq.engine.records.reader import events_of
from ambermq.log.buffer import Buffer
from ambermq.log.recovery.recovery import Recovery
from tests.engine.decide.messages.test_dead_letters import REJECTED_FOR, again, bodies_of, declare, rejected
from tests.engine.decide.messages.test_moves import ask
from tests.engine.rig import COLD, DIRECTORY, Rig, delivered


def copy(body: Buffer, offset: int, _marks: Marks | None) -> Publish:
    """Return the publish of a copy that tells its message."""
    made = b"copy of " + bytes(body)
    return Publish(None, 0, 0, [made], [offset], len(made), True, settled=True)


def edit(rig: Rig, offsets: list[int], to: str = "", **values: object) -> dict[str, object]:
    """Ask until the request is done; return the sums of the answers."""
    sums: dict[str, object] = {"moved": 0, "acquired": 0, "gone": 0, "no_room": 0, "no_origin": 0}
    while offsets:
        answer = ask(rig, EditMessages("key", "dead", offsets, to, copy, **values))  # type: ignore[arg-type]
        if not isinstance(answer, dict):
            return {"refused": answer}
        offsets = offsets[answer["done"] :]
        for name in sums:
            sums[name] += answer.get(name, 0)
    return sums


def dead(rig: Rig) -> list[int]:
    """Return the offsets of the dead letters."""
    return [entry_of(word) for words in rig.queue("dead").waiting_lists for word in words]


def rig_with_dead_letters() -> Rig:
    """Return a broker with three dead letters."""
    rig = Rig()
    declare(rig, "dead")
    declare(rig, "q", dead_letter="dead")
    rejected(rig, "q", b"a", b"b", b"c")
    return rig


@pytest.fixture
def rig() -> Iterator[Rig]:
    rig = rig_with_dead_letters()
    yield rig
    assert again(rig).recovered.epoch


def test_copies_take_the_places_of_messages() -> None:
    """Each event that ends a message names its copy; all are in one batch."""
    rig = rig_with_dead_letters()
    first, second, _ = dead(rig)
    assert edit(rig, [first, second]) == {"moved": 2, "acquired": 0, "gone": 0, "no_room": 0, "no_origin": 0}
    assert rig.queue("dead").counters.moved == 2
    assert rig.queue("dead").counters.discarded == 0
    assert bodies_of(rig, "q") == [b"copy of a", b"copy of b"]
    after = again(rig)
    assert bodies_of(after, "dead") == [b"c"]
    after.kill()
    recovery = Recovery.open(after.storage, DIRECTORY, COLD, after.now_us)
    (batch,) = [found for one in recovery.batches() if (found := _copies(list(events_of(one))))]
    recovery.close()
    assert [(one.reason, one.copy, ended) for one, ended in batch] == [
        (DiscardReason.EDITED, published, offset)
        for published, offset in zip([one.copy for one, _ in batch], (first, second), strict=True)
    ]


def test_a_dry_run_of_edits_says_what_they_do() -> None:
    """A full queue takes no more, also over requests; nothing is changed."""
    rig = rig_with_dead_letters()
    rig.do(UpdateQueue("key", "q", lambda _state: {}, {"messages_max": 2}))
    first, second, third = dead(rig)
    dry = ask(rig, EditMessages("key", "dead", [first], "", copy, dry_run=b""))
    taken = dry.pop("taken")
    assert dry.pop("targets") == {"q": 1}
    assert dry == {"moved": 1, "acquired": 0, "gone": 0, "no_room": 0, "no_origin": 0, "done": 1, "is_reading": False}
    rest = ask(rig, EditMessages("key", "dead", [second, third], "", copy, dry_run=taken))
    assert (rest["moved"], rest["no_room"], rest["targets"]) == (1, 1, {"q": 1})
    assert (rig.queue("q").depth, dead(rig)) == (0, [first, second, third])
    assert edit(rig, [first, second, third])["moved"] == 2


def _copies(events: list[Event]) -> list[tuple[Discarded, int]]:
    """Return the events of a batch that name copies, with the offset of the message; each copy is right before."""
    found = []
    for before, event in pairwise(events):
        if isinstance(event, Discarded) and event.copy:
            assert isinstance(before, Published)
            assert before.offset == event.copy
            found.append((event, entry_of(int.from_bytes(event.words, "little"))))
    return found


def test_what_stays_is_counted(rig: Rig) -> None:
    """No room, no origin, held by a consumer, gone."""
    declare(rig, "full", messages_max=1)
    offsets = dead(rig)
    assert edit(rig, offsets, to="full") == {"moved": 1, "acquired": 0, "gone": 0, "no_room": 2, "no_origin": 0}
    rig.do(rig.publish(rig.producer("dead"), b"stranger"))
    consumer = rig.consumer("dead", credit=1)
    rig.do()
    assert rig.queue("dead").held_by(consumer)
    counts = edit(rig, [*offsets, *dead(rig)[-1:], 1 << 40])
    assert counts == {"moved": 1, "acquired": 1, "gone": 2, "no_room": 0, "no_origin": 1}


def test_a_large_copy_is_refused_by_the_limit_of_its_queue(rig: Rig) -> None:
    """The message stays."""
    declare(rig, "small", message_bytes_max=5)
    assert edit(rig, dead(rig), to="small")["no_room"] == 3
    assert len(dead(rig)) == 3


def test_a_message_that_cannot_be_edited_refuses_the_request(rig: Rig) -> None:
    """Nothing moves then."""

    def refuse(_body: Buffer, _offset: int, _marks: Marks | None) -> Publish:
        raise Refused("amqp:decode-error", "no")

    while isinstance(answer := ask(rig, EditMessages("key", "dead", dead(rig), "", refuse)), dict):
        assert answer == {"done": 0, "is_reading": True}
    assert answer == "amqp:decode-error"
    assert ask(rig, EditMessages("key", "none", [1], "", copy)) == "amqp:not-found"
    assert len(dead(rig)) == 3


@settings(max_examples=20, deadline=None)
@given(st.lists(st.integers(0, 40_000), min_size=1, max_size=30))
def test_one_request_takes_what_fits_and_the_client_asks_on(sizes: list[int]) -> None:
    """No message is lost and none is twice, whatever their sizes; a restart finds the same."""
    rig = Rig(config=EngineConfig(chunk_bytes=4096))
    declare(rig, "dead")
    declare(rig, "q", dead_letter="dead")
    rejected(rig, "q", *(b"%05d" % number + bytes(size) for number, size in enumerate(sizes)), outcome=REJECTED_FOR)
    for _ in range(len(sizes)):
        # A message that comes while its segment ends is refused for want of room, and stays.
        edit(rig, dead(rig))
        rig.producer("other")
    expected = {b"copy of %05d" % number + bytes(size) for number, size in enumerate(sizes)}
    after = again(rig)
    consumer = after.consumer("q", credit=100)
    effects = [effect for _ in range(len(sizes) + 1) for effect in after.do()]
    found = [body for one, body in delivered(effects) if one == consumer]
    assert len(found) == len(sizes)
    assert set(found) == expected
