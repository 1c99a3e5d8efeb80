"""Dead letters for one reason share its text: while they come, after a fold of the log, and after a snapshot."""

import pytest

from ambermq.engine.entries.marks import Marks
from ambermq.engine.entries.outcome import Outcome, OutcomeKind
from ambermq.engine.model.state import State
from ambermq.engine.snapshots import shared_marks
from ambermq.engine.snapshots.state_codec import image_of, state_of
from tests.engine.decide.messages.test_dead_letters import again, declare, rejected
from tests.engine.rig import Rig


def marks_of(state: State) -> list[Marks]:
    """Return the marks of the dead letters."""
    queue = state.queue_named("dead")
    assert queue is not None
    found = [entry.marks for _, entry in sorted(queue.entries.items())]
    return [one for one in found if one is not None]


def rig_with(*texts: str) -> Rig:
    """Return a broker with two messages rejected for each text, every text an object of its own."""
    rig = Rig()
    declare(rig, "dead")
    declare(rig, "q", dead_letter="dead")
    for text in texts:
        own = bytes(text, "ascii").decode()
        rejected(rig, "q", b"a", b"b", outcome=Outcome(OutcomeKind.REJECTED, condition="x:y", description=own))
        rig.now_us += 1000
        rig.do()
    return rig


def objects(state: State) -> tuple[int, int, int]:
    """Return how many dead letters there are, and how many values their marks and descriptions are in memory."""
    marks = marks_of(state)
    return len(marks), len({id(one) for one in marks}), len({id(one.description) for one in marks})


def test_equal_descriptions_are_one_text() -> None:
    """Messages that were rejected at once also share the marks."""
    rig = rig_with("a" * 2000, "b" * 900, "a" * 2000, "a" * 2000)
    assert objects(rig.loop.state) == (8, 4, 2)
    assert objects(state_of(image_of(rig.loop.state))) == (8, 4, 2)
    assert objects(again(rig).loop.state) == (8, 4, 2)
    assert {len(one.description) for one in marks_of(rig.loop.state)} == {1024, 905}


def test_a_bounded_number_of_values_is_known_while_a_snapshot_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only neighbours share marks then, all share their text, and the state is the same."""
    monkeypatch.setattr(shared_marks, "_KNOWN_MAX", 1)
    state = rig_with("a", "b", "a").loop.state
    assert objects(state) == (6, 3, 2)
    loaded = state_of(image_of(state))
    assert objects(loaded) == (6, 3, 2)
    assert marks_of(loaded) == marks_of(state)
