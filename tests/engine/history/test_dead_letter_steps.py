"""The steps of a message that its consumer rejected, on a queue with a dead-letter target."""

import pytest

from ambermq.engine.entries.discard_reason import DiscardReason
from ambermq.engine.entries.entry_word import make_words
from ambermq.engine.entries.outcome import Outcome, OutcomeKind
from ambermq.engine.events import Acquired, Discarded, Published, Settled
from ambermq.engine.history.message_steps import StepKind, Track

WORDS = make_words(10, [5])
REJECTED = Outcome(OutcomeKind.REJECTED)


@pytest.mark.parametrize(
    ("reason", "last"), [(DiscardReason.LOOP, StepKind.DISCARDED), (DiscardReason.PURGED, StepKind.REJECTED)]
)
def test_a_rejected_message_ends_as_a_loop(reason: DiscardReason, last: StepKind) -> None:
    """Where its dead letters would go in a circle. For any other reason it is not there to be discarded."""
    track = Track(int.from_bytes(WORDS, "little"))
    for event in (
        Published(10, 1, (2,), 3, WORDS, 5),
        Acquired(11, 1, 2, (4,), WORDS),
        Settled(12, 1, 2, 4, REJECTED, WORDS),
        Discarded(13, 1, 2, reason, WORDS),
    ):
        track.apply(event)
    assert track.steps[-1].kind is last
    assert track.is_over is (last is StepKind.DISCARDED)
