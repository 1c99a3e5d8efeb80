"""What leaves only when its message was read, and what never does since it is damaged."""

import pytest

from ambermq.engine.commands import DetachConsumer, ReportDamage, Settle
from ambermq.engine.config import EngineConfig
from ambermq.engine.effects import Deliver, Drained, PublishDone
from ambermq.engine.entries.entry_word import make_words
from ambermq.engine.entries.outcome import Outcome, OutcomeKind
from ambermq.engine.events import Published
from tests.engine.rig import Rig, delivered, held
from tests.log.simulated import SimulatedFile


def _in_batches_of_their_own(count: int) -> tuple[Rig, list[bytes]]:
    """Return a broker with messages, and their bodies. The damage of one is that of no other."""
    rig = Rig()
    producer = rig.producer()
    bodies = [b"%d" % number * 100 for number in range(count)]
    for body in bodies:
        rig.do(rig.publish(producer, body))
    return rig, bodies


def _with_damage(rig: Rig, body: bytes) -> Rig:
    """Return the next life, which finds a body damaged that it reads from the disk."""
    rig.loop.make_due()
    rig.do()
    again = rig.next_life()
    again.damage(body)
    again.forget_pages()
    return again


def test_a_cold_body_parks_its_consumer_and_no_other() -> None:
    """The others go on; what comes later for the parked one keeps its place in line, a drain too."""
    rig = Rig()
    producer, side = rig.producer(), rig.producer("hot")
    bodies = [b"%d" % number * 200 for number in range(3)]
    rig.do(*[rig.publish(producer, body) for body in bodies], rig.publish(side, b"hot"))
    rig.forget_pages()
    parked, other = rig.consumer(), rig.consumer("hot")
    rig.loop.set_credit(parked, 3)
    rig.loop.set_credit(other, 3)
    assert delivered(rig.step()) == [(other, b"hot")]
    rig.loop.set_credit(parked, 5, draining=True)
    effects = rig.step(rig.publish(producer, b"late", durable=False))
    assert [type(effect) for effect in effects] == [PublishDone]
    assert rig.loop.is_waiting
    effects = rig.completed()
    assert delivered(effects) == [(parked, body) for body in [*bodies, b"late"]]
    assert type(effects[-1]) is Drained
    assert rig.loop.demand.wants[parked].held == []
    assert not rig.loop.is_waiting or rig.loop.log.durable_end < rig.loop.log.log_end


def test_a_parked_consumer_that_goes_gives_everything_back() -> None:
    """Uncounted, for nothing of it was sent."""
    rig = Rig()
    producer = rig.producer()
    rig.do(*[rig.publish(producer, b"%d" % number * 300) for number in range(4)])
    rig.forget_pages()
    parked = rig.consumer()
    rig.loop.set_credit(parked, 4)
    assert rig.step() == []
    assert delivered(rig.do(DetachConsumer(parked))) == []
    assert len(rig.queue().returned) == 4
    assert not any(entry.count for entry in rig.queue().entries.values())


def test_a_damaged_body_is_set_aside_and_never_delivered() -> None:
    """Its entry is parked by an event, its credit serves the next message, and a restart changes nothing."""
    rig = Rig()
    producer = rig.producer()
    bodies = [b"%d" % number * 300 for number in range(4)]
    for body in bodies:
        rig.do(rig.publish(producer, body))
    rig.damage(bodies[1])
    rig.forget_pages()
    consumer = rig.consumer()
    rig.loop.set_credit(consumer, 3)
    got: list[tuple[int, bytes]] = []
    for _ in range(4):
        got += delivered(rig.step() + rig.completed())
    assert got == [(consumer, bodies[0]), (consumer, bodies[2]), (consumer, bodies[3])]
    assert rig.queue().counters.damaged == 1
    assert rig.loop.demand.wants[consumer].held_count == 0
    rig.loop.log.close()
    again = Rig(rig.storage)
    assert again.queue().counters.damaged == 1
    other = again.consumer(credit=9)
    assert [body for _, body in delivered(again.do() + again.completed())] == [bodies[0], *bodies[2:]]
    assert len(again.queue().held_by(other)) == 3


@pytest.mark.parametrize("came_back", [False, True])
def test_a_damaged_message_leaves_its_run_and_gives_its_credit_back(*, came_back: bool) -> None:
    """The others of the run keep their own words and entries, and the credit is that of three deliveries."""
    rig, bodies = _in_batches_of_their_own(4)
    if came_back:
        first = rig.consumer(credit=4)
        assert len(delivered(rig.do())) == 4
        rig.do(
            Settle(first, rig.queue().held_by(first).to_bytes(), Outcome(OutcomeKind.MODIFIED, delivery_failed=True))
        )
        rig.do(DetachConsumer(first))
    rig = _with_damage(rig, bodies[1])
    words = list(rig.queue().returned if came_back else rig.queue().ready)
    consumer = rig.consumer(credit=6)
    runs = [effect for effect in rig.step() + rig.completed() if type(effect) is Deliver]
    whole = [0, 2, 3]
    assert [word for run in runs for word in run.words] == [words[number] for number in whole]
    assert delivered(list(runs)) == [(consumer, bodies[number]) for number in whole]
    entries = [entry for run in runs for entry in run.entries or [None] * len(run.words)]
    assert [entry and entry.count for entry in entries] == [1 if came_back else None] * 3
    assert (rig.loop.demand.wants[consumer].credit, rig.loop.demand.wants[consumer].held_count) == (3, 0)


def test_a_browser_sees_none_for_a_damaged_message() -> None:
    """The others have their bodies."""
    rig, bodies = _in_batches_of_their_own(3)
    rig = _with_damage(rig, bodies[1])
    words = list(rig.queue().ready)
    assert rig.loop.messages(words, None) is None
    rig.completed()
    assert rig.loop.messages(words, None) == [bodies[0], None, bodies[2]]


def test_a_large_message_is_damaged_when_any_chunk_is() -> None:
    """And whole otherwise, however many reads it takes."""
    rig = Rig(config=EngineConfig(chunk_bytes=500))
    producer = rig.producer()
    whole, broken = bytes(range(256)) * 8, b"".join(b"%03d" % number for number in range(700))
    rig.do(rig.publish(producer, broken))
    rig.do(rig.publish(producer, whole))
    rig.damage(broken[500:1000])
    rig.forget_pages()
    consumer = rig.consumer()
    rig.loop.set_credit(consumer, 2)
    got: list[tuple[int, bytes]] = []
    for _ in range(6):
        got += delivered(rig.step() + rig.completed())
    assert got == [(consumer, whole)]
    assert rig.queue().counters.damaged == 1


def test_large_messages_leave_one_by_one_however_little_is_kept_of_what_was_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each is read whole by one request; a cache that holds not even one of them, and no page cache, suffice."""
    monkeypatch.setattr(SimulatedFile, "read_now", lambda *_: None)
    rig = Rig(config=EngineConfig(chunk_bytes=4200))
    producer = rig.producer()
    bodies = [b"%03d" % number * 3000 for number in range(5)]
    for body in bodies:
        rig.do(rig.publish(producer, body))
    consumer = rig.consumer(credit=5)
    got: list[tuple[int, bytes]] = []
    rounds = 0
    while len(got) < 5 and rounds < 20:
        got += delivered(rig.step() + rig.completed())
        rounds += 1
    assert got == [(consumer, body) for body in bodies]


def test_damage_that_is_reported_after_its_consumer_went_is_set_aside_too() -> None:
    """Wherever the entry stands by then."""
    rig = Rig()
    consumer, words = held(rig, 2)
    rig.do(DetachConsumer(consumer), ReportDamage(rig.queue().id, words[0]))
    assert list(rig.queue().returned) == words[1:]


def test_an_event_knows_its_offset_before_it_is_written() -> None:
    """An event at another offset than the log gives it is our own mistake."""
    rig = Rig()
    event = Published(5, 1, (1,), 1, make_words(5, [1]), 1, bodies=[b"x"], id_hashes=[0])
    with pytest.raises(AssertionError):
        rig.loop._log_and_apply([event])
