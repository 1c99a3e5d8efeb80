"""The terms of one field: the presence of the field, and each value or pattern that an attachment compares it with.

A term stores its hit: the attachment if there is only one, else a set of numbers. With many attachments most terms
belong to one attachment. Such a term costs one entry of a dict, whose key is the value of the condition.

Equality: numbers are equal by value, of any numeric type. true and false equal only themselves. Text equals text, as
string, symbol or char. Binary equals binary, null equals null. NaN, and a value of another type (a decimal, a uuid, a
list), equal nothing.
"""

from enum import Enum
from typing import Any, final

from ambermq.engine.matching.attachment_numbers import AttachmentNumbers, Moved
from ambermq.engine.matching.hit_set import Hits, count_of, insert_number, numbers_in, pack, remove_number, renumber
from ambermq.engine.model.attachment import Attachment
from ambermq.engine.patterns.pattern_trie import PatternTrie
from ambermq.engine.time_budget import TimeBudget

__all__ = ["FieldTerms", "Hit", "Key", "Sign", "key_of"]

Hit = Attachment | Hits
"""The attachments that a term hits: one, or the numbers of several."""


@final
class Sign(Enum):
    """The keys of terms that are not plain values."""

    PRESENT = "present"
    TRUE = "true"
    FALSE = "false"
    """Not the bool itself, because a dict cannot tell True from 1."""
    NOTHING = "nothing"
    """The key of a value that equals nothing."""


Key = str | int | float | bytes | None | Sign
"""The key of a term: a value in a form that a dict can compare, or a Sign."""


def key_of(value: Any) -> Key:
    """Return the term that a value of any type hits."""
    if isinstance(value, bool):
        return Sign.TRUE if value else Sign.FALSE
    if value is None or isinstance(value, (str, int)) or type(value) is bytes:
        return value
    # A subclass of bytes is a decimal, not a binary. NaN is the one number that differs from itself, but a dict would
    # find the same object.
    return value if isinstance(value, float) and value == value else Sign.NOTHING  # noqa: PLR0124


@final
class FieldTerms:
    """The hit of each term of a field. With a separator the values are patterns, which match only text."""

    __slots__ = ("_exact", "_patterns", "_present")

    def __init__(self, separator: str | None, budget: TimeBudget | None = None) -> None:
        self._present: Hit | None = None
        self._exact: dict[Key, Hit] = {}
        self._patterns: PatternTrie[Hit] | None = None if separator is None else PatternTrie(separator, budget)

    def is_empty(self) -> bool:
        """Return whether no attachment has a term of this field."""
        return self._present is None and not self._exact and not self._patterns

    def get(self, key: Key) -> Hit | None:
        """Return the hit of exactly this term, None if there is none."""
        if key is Sign.PRESENT:
            return self._present
        if self._patterns is not None:
            return self._patterns.get(key) if isinstance(key, str) else None
        return self._exact.get(key)

    def match(self, value: Any) -> list[Hit]:
        """Return the hits of the terms that a value satisfies."""
        if self._patterns is not None:
            hits = self._patterns.match(value) if isinstance(value, str) else []
        else:
            hit = self._exact.get(value if type(value) is str else key_of(value))
            hits = [] if hit is None else [hit]
        if self._present is not None:
            hits.append(self._present)
        return hits

    def add(self, key: Key, attachment: Attachment, numbers: AttachmentNumbers) -> None:
        """Add an attachment to the hit of a term. The key of a pattern is a text."""
        hit = self.get(key)
        if hit is None:
            self._put(key, attachment)
        elif isinstance(hit, Attachment):
            self._put(key, pack(sorted((numbers.number_of(hit), numbers.number_of(attachment)))))
        else:
            self._put(key, insert_number(hit, numbers.number_of(attachment)))

    def remove(self, key: Key, attachment: Attachment, numbers: AttachmentNumbers) -> None:
        """Remove an attachment from the hit of a term."""
        hit = self.get(key)
        assert hit is not None, f"no term {key!r} of attachment {attachment.id}"
        if isinstance(hit, Attachment):
            self._drop(key)
            return
        hit = remove_number(hit, numbers.number_of(attachment))
        self._put(key, numbers.at(numbers_in(hit))[0] if count_of(hit) == 1 else hit)

    def renumber(self, moved: Moved) -> None:
        """Replace each number by its new number."""
        if isinstance(self._present, Hits):
            self._present = renumber(self._present, moved)
        table = self._exact if self._patterns is None else self._patterns
        for key, hit in table.items():
            if isinstance(hit, Hits):
                self._put(key, renumber(hit, moved))

    def _put(self, key: Key, hit: Hit) -> None:
        if key is Sign.PRESENT:
            self._present = hit
        elif self._patterns is None:
            self._exact[key] = hit
        else:
            assert isinstance(key, str)
            self._patterns[key] = hit

    def _drop(self, key: Key) -> None:
        if key is Sign.PRESENT:
            self._present = None
        elif self._patterns is None:
            del self._exact[key]
        else:
            assert isinstance(key, str)
            del self._patterns[key]
