"""The table of what outcomes have added to the messages of a queue."""

from ambermq.engine.entries.discard_reason import MoveReason
from ambermq.engine.entries.entry import Entry
from ambermq.engine.entries.entry_word import pack_words
from ambermq.engine.entries.marks import Marks, SetAsideFor
from ambermq.engine.model.queue_parts.outcome_annotations import NO_ANNOTATIONS, cost_of
from ambermq.snapshot.persistent_map import PersistentMap

PAIRS = ((b"\xa3\x01a", b"\x41"), (b"\xa3\x01b", b"\x54\x07"))
DEAD = Entry(annotations=PAIRS, marks=Marks(MoveReason.REJECTED, "q", 1, 5, "app:bad"))
ASIDE = Entry(set_aside_for=SetAsideFor(MoveReason.REJECTED, "app:bad"))


def test_a_value_counts_once_however_many_messages_have_it() -> None:
    """It counts until the last of them has left."""
    table = NO_ANNOTATIONS.with_entries([DEAD, ASIDE, Entry(count=1)])
    assert table.size == cost_of("app:bad") + cost_of(PAIRS)
    assert {value: count for value, (_, count) in table.known.items()} == {"app:bad": 2, PAIRS: 1}
    before = PersistentMap({1: DEAD, 2: ASIDE})
    table = table.recounted(before, before.delete(1), pack_words([1 << 16]))
    assert table.size == cost_of("app:bad")
    table = table.recounted(before, PersistentMap(), pack_words([2 << 16]))
    assert table == NO_ANNOTATIONS


def test_columns_that_change_count_what_they_hold_then() -> None:
    """A message that is set aside, or gets other annotations."""
    table = NO_ANNOTATIONS.with_entries([DEAD])
    before, after = PersistentMap({1: DEAD}), PersistentMap({1: Entry(annotations=PAIRS[:1])})
    table = table.recounted(before, after, pack_words([1 << 16]))
    assert table == NO_ANNOTATIONS.with_entries([after[1]])


def test_the_bytes_are_those_of_the_objects() -> None:
    """A text has its UTF-8 bytes, annotations those of their keys and values, and both have what objects take."""
    assert [cost_of("ab"), cost_of("é"), cost_of("\ud800")] == [258, 258, 257]
    assert cost_of(PAIRS) == 256 + (128 + 3 + 1) + (128 + 3 + 2)


def test_equal_values_become_one_object() -> None:
    """Whatever object a message comes with."""
    text = "app:bad".upper().lower()
    table = NO_ANNOTATIONS.with_entries([DEAD])
    assert text is not "app:bad"  # noqa: F632 - identity is what is tested
    assert DEAD.marks is not None
    assert table.shared(text) is DEAD.marks.description
    assert table.shared(tuple(list(PAIRS))) is PAIRS  # noqa: C414 - an equal tuple of its own
    assert table.shared("other") == "other"
