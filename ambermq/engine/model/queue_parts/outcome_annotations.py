"""The message annotations that outcomes of receivers have added to the messages of a queue, each distinct value once.

    description of a dead letter     text, from the outcome rejected
    annotations of a message         pairs of encoded key and encoded value, from the outcome modified

A receiver chooses these bytes, and a queue may hold them for each message. So their number is known, and a decision
limits it. The table is derived: the columns of each message hold its values. Equal values are one object.
"""

from collections.abc import Iterable, Mapping
from typing import Final, TypeVar, final

from msgspec import Struct

from ambermq.engine.entries.entry import PLAIN, Entry
from ambermq.engine.entries.entry_word import unpack_words
from ambermq.engine.model.queue_parts.columns import Annotations, Columns
from ambermq.snapshot.persistent_map import PersistentMap

__all__ = ["NO_ANNOTATIONS", "OutcomeAnnotations", "Value", "cost_of", "values_of"]

Value = str | Annotations
_Same = TypeVar("_Same", str, Annotations)

# These are part of a figure that decisions compare with a limit, not of the fold; they are what the objects take.
_VALUE_BYTES: Final = 256
_PAIR_BYTES: Final = 128


def cost_of(value: Value) -> int:
    """Return the bytes of memory of a distinct value, with its place in the table."""
    if isinstance(value, str):
        return _VALUE_BYTES + (len(value) if value.isascii() else len(value.encode("utf-8", "replace")))
    return _VALUE_BYTES + sum([_PAIR_BYTES + len(key) + len(one) for key, one in value])


def values_of(entry: Entry) -> list[Value]:
    """Return the values that the columns of an entry hold."""
    values: list[Value] = [entry.annotations] if entry.annotations else []
    if entry.marks is not None and entry.marks.description:
        values.append(entry.marks.description)
    if entry.set_aside_for is not None and entry.set_aside_for.description:
        values.append(entry.set_aside_for.description)
    return values


def _count(counts: dict[Value, int], entry: Entry, change: int) -> None:
    for value in values_of(entry):
        counts[value] = counts.get(value, 0) + change


@final
class OutcomeAnnotations(Struct, frozen=True):
    """The distinct values of a queue, with the number of its messages that have each; immutable."""

    known: PersistentMap[Value, tuple[Value, int]] = PersistentMap()
    """By value: the one object that all messages share, and their number."""
    size: int = 0
    """The bytes that the values take."""

    def __bool__(self) -> bool:
        """Return whether there are any."""
        return bool(self.known)

    def shared(self, value: _Same) -> _Same:
        """Return the object that is known for a value; `value` itself if none is."""
        known = self.known.get(value)
        return value if known is None else known[0]  # type: ignore[return-value]  # an equal value has its type

    def recounted(self, before: Columns, after: Columns, words: bytes) -> "OutcomeAnnotations":
        """Return the table after the columns of packed words have changed."""
        counts: dict[Value, int] = {}
        for word in unpack_words(words):
            gone, come = before.get(word >> 16, PLAIN), after.get(word >> 16, PLAIN)
            if gone is not PLAIN:
                _count(counts, gone, -1)
            if come is not PLAIN:
                _count(counts, come, 1)
        return self.with_counts(counts)

    def with_entries(self, entries: Iterable[Entry]) -> "OutcomeAnnotations":
        """Return the table with the columns of messages that have come."""
        counts: dict[Value, int] = {}
        for entry in entries:
            _count(counts, entry, 1)
        return self.with_counts(counts)

    def with_counts(self, counts: Mapping[Value, int]) -> "OutcomeAnnotations":
        """Return the table after the number of messages with each of some values has changed by so many."""
        table, size = self.known.mutate(), self.size
        for value, change in counts.items():
            if not change:
                continue
            shared, count = table.get(value, (value, 0))
            if count + change > 0:
                table[value] = shared, count + change
                size += 0 if count else cost_of(value)
            elif count:
                del table[value]
                size -= cost_of(value)
        return OutcomeAnnotations(table.finish(), size)


NO_ANNOTATIONS: Final = OutcomeAnnotations()
