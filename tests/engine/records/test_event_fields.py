"""Events as values: every kind has a type and facts of simple values."""

from hypothesis import given
from hypothesis import strategies as st

from ambermq.engine.entries.entry_word import entry_of, make_words, pack_words, ranges_of, unpack_words
from ambermq.engine.entries.outcome import Outcome, OutcomeKind
from ambermq.engine.events import Event, Published, QueueDeclared, Settled
from ambermq.engine.events.registry import TYPE_NAMES
from ambermq.engine.records.event_fields import EVENT_TYPES, facts_of, next_after, type_of
from ambermq.engine.settings.queue_settings import Settings


def name(queue: int) -> str | None:
    """Only one queue has a name that is known."""
    return "q" if queue == 7 else None


def test_types_are_those_of_the_records() -> None:
    """An event's type is written as its record's is, and each record type has its event."""
    assert sorted(EVENT_TYPES) == sorted(TYPE_NAMES.values())


def test_a_run_is_told_once() -> None:
    """Count, size, entries as ranges, and the name of the queue where it is known."""
    words = make_words(100, (10, 20)) + make_words(200, (30,))
    event = Published(100, 5, (7, 8), 3, words, 60, durable=False)
    assert type_of(event) == "published"
    assert next_after(event) == 103
    assert facts_of(event, name) == {
        "count": 3,
        "bytes": 60,
        "durable": False,
        "producer": 3,
        "offsets": [[100, 101], [200, 200]],
        "queues": ["q", ""],
        "queue_ids": [7, 8],
    }


def test_an_outcome_is_told_in_full() -> None:
    """Its kind, and what belongs to it."""
    modified = Outcome(OutcomeKind.MODIFIED, delivery_failed=True, undeliverable_here=False)
    event = Settled(9, 5, 7, 4, modified, make_words(100, (10,)))
    told = facts_of(event, name)
    assert (told["outcome"], told["delivery_failed"], told["undeliverable_here"]) == ("modified", True, False)
    assert (told["queue"], told["queue_id"], told["consumer"]) == ("q", 7, 4)
    rejected = Outcome(OutcomeKind.REJECTED, condition="app:bad", description="why")
    told = facts_of(Settled(9, 5, 8, 4, rejected, b""), name)
    assert (told["outcome"], told["condition"], told["description"]) == ("rejected", "app:bad", "why")
    assert "queue" not in told


def test_a_declaration_names_its_queue() -> None:
    """The event alone gives the name."""
    event: Event = QueueDeclared(12, 5, "new", Settings(messages_max=4))
    assert facts_of(event, name) == {"messages_max": 4, "queue": "new", "queue_id": 12}
    assert next_after(event) == 13


@given(st.lists(st.integers(0, 50)))
def test_ranges_hold_every_entry_once_and_in_order(offsets: list[int]) -> None:
    """Spread out again, the ranges are the entries."""
    words = pack_words([offset << 16 | 5 for offset in offsets])
    spread = [entry for first, last in ranges_of(words) for entry in range(first, last + 1)]
    assert spread == [entry_of(word) for word in unpack_words(words)] == offsets
