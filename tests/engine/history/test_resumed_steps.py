"""The steps of a message whose receiver's link is suspended, resumed and ended."""

from ambermq.engine.entries.entry_word import make_words
from ambermq.engine.events import Acquired, LinkEnded, LinkResumed, LinkSuspended, Published, Started
from ambermq.engine.history.message_steps import MessagePlaceState, StepKind, Track

WORDS = make_words(10, [5])
WORD = int.from_bytes(WORDS, "little")


def test_a_message_stays_with_the_links_that_resume_each_other() -> None:
    """A start that keeps the link is no step; the end of the link is a failed delivery."""
    track = Track(WORD)
    for event in (
        Published(10, 1, (2,), 3, WORDS, 5),
        Acquired(11, 1, 2, (4,), WORDS),
        LinkSuspended(12, 1, 4),
        LinkResumed(14, 1, 4, 13),
        Started(15, 1, 2, kept=(13,)),
    ):
        track.apply(event)
    (place,) = track.places.values()
    assert (place.state, place.consumer, place.count) == (MessagePlaceState.ACQUIRED, 13, 0)
    track.apply(LinkEnded(16, 1, 13))
    (place,) = track.places.values()
    assert (place.state, place.consumer, place.count) == (MessagePlaceState.AVAILABLE, 0, 1)
    kinds = [step.kind for step in track.steps]
    assert kinds == [StepKind.PUBLISHED, StepKind.ACQUIRED, StepKind.RESUMED, StepKind.RETURNED]


def test_a_start_that_does_not_keep_the_link_returns_the_message() -> None:
    """As a start does without link recovery."""
    track = Track(WORD)
    for event in (Published(10, 1, (2,), 3, WORDS, 5), Acquired(11, 1, 2, (4,), WORDS), Started(12, 1, 2, kept=(5,))):
        track.apply(event)
    assert track.steps[-1].kind is StepKind.RETURNED
