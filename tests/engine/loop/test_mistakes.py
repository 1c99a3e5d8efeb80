"""What goes wrong on our own side: it costs one connection, or is written down, and nothing else."""

from types import ModuleType
from unittest import mock

import pytest

from ambermq.engine.commands import Publish, Settle
from ambermq.engine.decide.context import Decision, DecisionContext
from ambermq.engine.decide.decide import DECIDE
from ambermq.engine.effects import CommandFailed, PublishDone
from ambermq.engine.entries.entry_word import pack_words
from ambermq.engine.entries.outcome import RELEASED
from ambermq.engine.errors import Refused
from ambermq.engine.events import Lost, Started
from ambermq.engine.fold.apply import fold
from ambermq.engine.loop import durable_loop as durable
from ambermq.engine.loop import effect_release, logged_state
from ambermq.engine.model.state import State
from ambermq.engine.records.reader import events_of
from ambermq.log.recovery.recovery import Recovery
from ambermq.log.storage.worker_threads import InlineWorkers
from tests.engine.rig import COLD, Rig, held
from tests.log.lives import DIRECTORY
from tests.log.simulated import SimulatedStorage


def test_a_decision_that_raises_drops_its_command_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """The others of its tick are decided, written and answered."""
    rig = Rig()
    good, bad = rig.producer("good"), rig.producer("bad")
    decide = DECIDE[Publish]

    def failing(state: State, command: Publish, moment: DecisionContext) -> Decision:
        if command.producer == bad:
            raise ZeroDivisionError("our mistake")
        return decide(state, command, moment)

    monkeypatch.setitem(DECIDE, Publish, failing)
    effects = rig.do(
        Publish("first", good, 0, [b"1"], [0], 1),
        Publish("broken", bad, 0, [b"2"], [0], 1),
        Publish("last", good, 1, [b"3"], [0], 1),
    )
    assert [effect.link for effect in effects if type(effect) is PublishDone] == ["first", "last"]
    (failed,) = [effect for effect in effects if type(effect) is CommandFailed]
    assert failed.command.link == "broken"
    assert repr(failed.error) == "ZeroDivisionError('our mistake')"
    assert (rig.queue("good").available, rig.queue("bad").available) == (2, 0)


def test_a_refusal_of_a_command_without_an_answer_is_a_failed_command(monkeypatch: pytest.MonkeyPatch) -> None:
    """A settlement has no key for a refusal, so a decision that refuses it is a mistake, which ends no loop."""
    rig = Rig()
    consumer, words = held(rig, 1)
    refusing = mock.Mock(side_effect=Refused("amqp:not-found", "our mistake"))
    monkeypatch.setitem(DECIDE, Settle, refusing)
    (failed,) = rig.do(Settle(consumer, pack_words(words), RELEASED))
    assert type(failed) is CommandFailed
    assert rig.loop.failure is None


@pytest.mark.parametrize(
    ("module", "place"), [(logged_state, "APPLY"), (logged_state, "WRITE"), (durable, "WRITE"), (durable, "dispatch")]
)
def test_a_mistake_behind_a_decision_ends_the_loop(
    module: ModuleType, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It propagates, then and from every later call; nothing of that tick is written, not even at the close."""
    rig = Rig()
    producer = rig.producer()
    rig.do(rig.publish(producer, b"before"))
    rig.consumer(credit=5)
    broken = ZeroDivisionError("our mistake")
    mistake = mock.MagicMock(side_effect=broken)
    mistake.__getitem__.side_effect = broken
    monkeypatch.setattr(module, place, mistake)
    end = rig.loop.log.log_end
    with pytest.raises(ZeroDivisionError):
        rig.step(rig.publish(producer, b"one"))
    assert rig.loop.failure is broken
    monkeypatch.undo()
    with pytest.raises(ZeroDivisionError):
        rig.step(rig.publish(producer, b"two"))
    with pytest.raises(ZeroDivisionError):
        rig.completed()
    rig.loop.log.close()
    assert rig.loop.log.log_end == end
    again = Rig(rig.storage)
    assert again.queue().published == 1


def test_a_mistake_with_what_leaves_ends_the_loop_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """What completed() was about to return is lost, so nothing may follow it."""
    rig = Rig()
    rig.consumer(credit=5)
    rig.step(rig.publish(rig.producer(), b"one"))
    monkeypatch.setattr(effect_release.EffectRelease, "_set_bodies", mock.Mock(side_effect=ZeroDivisionError))
    with pytest.raises(ZeroDivisionError):
        rig.completed()
    monkeypatch.undo()
    with pytest.raises(ZeroDivisionError):
        rig.step()


def test_what_a_repair_lost_is_written_down_before_the_start() -> None:
    """Lost ranges are the first events of the next life."""
    storage = SimulatedStorage()
    rig = Rig(storage)
    rig.loop.log.close()
    opened = Recovery.open(storage, DIRECTORY, COLD, rig.now_us)
    before = [event for batch in opened.batches() for event in events_of(batch)]
    log = opened.log(InlineWorkers())
    loop = durable.DurableLoop(log, rig.loop.state, rig.loop.config)
    loop.start(rig.now_us, lost=[(10, 20), (30, 31)])
    loop.log.close()
    again = Recovery.open(storage, DIRECTORY, COLD, rig.now_us)
    events = [event for batch in again.batches() for event in events_of(batch)][len(before) :]
    assert [(event.first, event.end) for event in events[:2] if type(event) is Lost] == [(10, 20), (30, 31)]
    assert type(events[2]) is Started
    again.close()


def test_what_a_repair_lost_leaves_the_queues_by_the_log() -> None:
    """The start sets lost messages aside; the fold of the log from where the state was is the state."""
    storage = SimulatedStorage()
    rig = Rig(storage)
    producer = rig.producer()
    for _ in range(4):
        rig.do(rig.publish(producer, b"one", b"two"))
    before = list(rig.queue().ready)
    rig.loop.log.close()
    opened = Recovery.open(storage, DIRECTORY, COLD, rig.now_us)
    old = sum(1 for batch in opened.batches() for _ in events_of(batch))
    loop = durable.DurableLoop(opened.log(InlineWorkers()), rig.loop.state, rig.loop.config)
    loop.start(rig.now_us, lost=[(before[1] >> 16, before[5] >> 16)])
    queue = loop.state.queue_named("q")
    assert queue is not None
    assert list(queue.ready) == [before[0], *before[5:]]
    assert loop.log.durable_end == loop.log.log_end
    loop.log.close()
    again = Recovery.open(storage, DIRECTORY, COLD, rig.now_us)
    events = [event for batch in again.batches() for event in events_of(batch)][old:]
    again.close()
    assert fold(rig.loop.state, events) == loop.state
