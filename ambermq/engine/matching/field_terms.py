"""The terms of one field: that it is there, and each value or pattern that some attachment compares it with.

A term keeps what it hits: the attachment itself where it is the only one, else a set of numbers. So a term of its own,
as most have where there are many, costs an attachment a place in a dict, whose key is the condition's own value.

What is equal: numbers by value, whatever their type, true and false only themselves, text text, whether string, symbol
or char, binary binary, null null. NaN equals nothing, nor does a value of another type: a decimal, a uuid, a list.
"""

from enum import Enum
from typing import Any, final

from ambermq.engine.matching.attachment_numbers import AttachmentNumbers, Moved
from ambermq.engine.matching.hit_set import Hits, count_of, excluding, including, numbers_in, pack, renumbered
from ambermq.engine.model.attachment import Attachment
from ambermq.engine.patterns.pattern_trie import PatternTrie

__all__ = ["FieldTerms", "Hit", "Key", "Sign", "key_of"]

Hit = Attachment | Hits
"""The attachments that a term hits: one, or the numbers of several."""


@final
class Sign(Enum):
    """Terms that are not written as the value that they stand for."""

    PRESENT = "present"
    TRUE = "true"
    FALSE = "false"
    """A dict takes True for 1."""
    NOTHING = "nothing"
    """What equals nothing."""


Key = str | int | float | bytes | None | Sign
"""A term of a field: a value as a dict may compare it, or that the field is there."""


def key_of(value: Any) -> Key:
    """Return the term that a value of any type hits."""
    if isinstance(value, bool):
        return Sign.TRUE if value else Sign.FALSE
    if value is None or isinstance(value, (str, int)) or type(value) is bytes:
        return value
    # A subclass of bytes is a decimal, which is no binary; NaN is the one number that differs from itself, but a dict
    # would find the same object.
    return value if isinstance(value, float) and value == value else Sign.NOTHING  # noqa: PLR0124


@final
class FieldTerms:
    """What each term of a field hits. With a separator its values are patterns, over text alone."""

    __slots__ = ("_exact", "_patterns", "_present")

    def __init__(self, separator: str | None) -> None:
        self._present: Hit | None = None
        self._exact: dict[Key, Hit] = {}
        self._patterns: PatternTrie[Hit] | None = None if separator is None else PatternTrie(separator)

    def is_empty(self) -> bool:
        """Say whether no attachment asks for this field."""
        return self._present is None and not self._exact and not self._patterns

    def get(self, key: Key) -> Hit | None:
        """Return what exactly this term hits."""
        if key is Sign.PRESENT:
            return self._present
        if self._patterns is not None:
            return self._patterns.get(key) if isinstance(key, str) else None
        return self._exact.get(key)

    def match(self, value: Any) -> list[Hit]:
        """Return what a value hits, by the terms that it satisfies."""
        if self._patterns is not None:
            hits = self._patterns.match(value) if isinstance(value, str) else []
        else:
            hit = self._exact.get(value if type(value) is str else key_of(value))
            hits = [] if hit is None else [hit]
        if self._present is not None:
            hits.append(self._present)
        return hits

    def add(self, key: Key, attachment: Attachment, numbers: AttachmentNumbers) -> None:
        """Let a term hit an attachment; a pattern is a text."""
        hit = self.get(key)
        if hit is None:
            self._put(key, attachment)
        elif isinstance(hit, Attachment):
            self._put(key, pack(sorted((numbers.number_of(hit), numbers.number_of(attachment)))))
        else:
            self._put(key, including(hit, numbers.number_of(attachment)))

    def remove(self, key: Key, attachment: Attachment, numbers: AttachmentNumbers) -> None:
        """Let a term hit an attachment no more."""
        hit = self.get(key)
        assert hit is not None, f"no term {key!r} of attachment {attachment.id}"
        if isinstance(hit, Attachment):
            self._drop(key)
            return
        hit = excluding(hit, numbers.number_of(attachment))
        self._put(key, numbers.at(numbers_in(hit))[0] if count_of(hit) == 1 else hit)

    def renumber(self, moved: Moved) -> None:
        """Follow numbers to where they have gone."""
        if isinstance(self._present, Hits):
            self._present = renumbered(self._present, moved)
        table = self._exact if self._patterns is None else self._patterns
        for key, hit in table.items():
            if isinstance(hit, Hits):
                self._put(key, renumbered(hit, moved))

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
