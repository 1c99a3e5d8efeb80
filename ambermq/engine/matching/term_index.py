"""The hit-set: terms looked up, what they hit joined and counted (the matching of the OpenAMQ design).

An attachment is kept under each of its terms and matches when all of them were hit. So a message costs a look at each
field that wiring names, and then the length of what was hit, whatever the number of attachments.

Rule 1. Sparse sets are counted number by number. Dense ones are only asked about what those brought up, since they
        would cost as much as there are attachments.
Rule 2. Attachments that have dense terms alone are brought up by nobody: they are counted side by side, as bits.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, ItemsView, Iterable, Mapping, Sequence
from typing import final

from ambermq.engine.matching.attachment_numbers import AttachmentNumbers, Moved
from ambermq.engine.matching.field_terms import FieldTerms, Hit, Key, Sign
from ambermq.engine.matching.hit_set import DenseSet, among, exactly, numbers_in, planes_of
from ambermq.engine.model.attachment import Attachment

__all__ = ["Term", "TermIndex"]

Term = tuple[str, Key]
"""The name of a field, and what is asked of it."""


@final
class TermIndex:
    """Attachments by their terms. With a separator the terms are patterns."""

    __slots__ = ("_alike", "_fields", "_numbers", "_separator", "needs_one")

    def __init__(self, separator: str | None = None) -> None:
        self._separator = separator
        self._numbers = AttachmentNumbers()
        self._fields: dict[str, FieldTerms] = {}
        self._alike: dict[int, DenseSet] = {}
        """By how many terms they need: the numbers of attachments."""
        self.needs_one = True
        """Whether every attachment needs one term, so each that was hit matches."""

    def __len__(self) -> int:
        return len(self._numbers)

    def add(self, attachment: Attachment, terms: Collection[Term]) -> None:
        """Keep an attachment that is not here, under distinct terms."""
        self._renumber(self._numbers.insert(attachment, len(terms)))
        self._alike.setdefault(len(terms), DenseSet()).add(self._numbers.number_of(attachment))
        self.needs_one = self._alike.keys() <= {1}
        for name, key in _kept(terms):
            if name not in self._fields:
                self._fields[name] = FieldTerms(self._separator)
            self._fields[name].add(key, attachment, self._numbers)

    def remove(self, attachment: Attachment, terms: Collection[Term]) -> None:
        """Let an attachment go, from the terms that it was added with."""
        for name, key in _kept(terms):
            field = self._fields[name]
            field.remove(key, attachment, self._numbers)
            if field.is_empty():
                del self._fields[name]
        number = self._numbers.number_of(attachment)
        self._alike[len(terms)].discard(number)
        if not self._alike[len(terms)].count:
            del self._alike[len(terms)]
            self.needs_one = self._alike.keys() <= {1}
        self._numbers.remove(number)
        self._renumber(self._numbers.close_up())

    def fields(self) -> ItemsView[str, FieldTerms]:
        """Return the fields that terms ask for."""
        return self._fields.items()

    def field(self, name: str) -> FieldTerms | None:
        """Return the terms of one field."""
        return self._fields.get(name)

    def present(self) -> tuple[Attachment, ...]:
        """Return all attachments, in order of id."""
        return self._numbers.present()

    def any_of(self, hits: Sequence[Hit]) -> tuple[Attachment, ...]:
        """Return the attachments that need one term and were hit, in order of id."""
        if not hits:
            return ()
        if len(hits) == 1 and isinstance(hits[0], Attachment):
            return (hits[0],)
        numbers: list[int] = []
        for hit in hits:
            numbers.extend(self._numbers_of(hit))
        return self._numbers.at(sorted(numbers))

    def all_of(self, hits: Sequence[Hit]) -> tuple[Attachment, ...]:
        """Return the attachments all of whose terms were hit, in order of id."""
        dense = [hit for hit in hits if isinstance(hit, DenseSet)]
        counts: Counter[int] = Counter()
        for hit in hits:
            if not isinstance(hit, DenseSet):
                counts.update(self._numbers_of(hit))
        missing: defaultdict[int, list[int]] = defaultdict(list)
        needed = self._numbers.needed
        for number, count in counts.items():
            missing[needed[number] - count].append(number)
        found = missing.pop(0, [])
        if dense:
            found += self._found_with(dense, missing)
        return self._numbers.at(sorted(found))

    def _numbers_of(self, hit: Hit) -> Sequence[int]:
        return (self._numbers.number_of(hit),) if isinstance(hit, Attachment) else numbers_in(hit)

    def _found_with(self, dense: Sequence[DenseSet], missing: Mapping[int, Sequence[int]]) -> list[int]:
        """Return those who miss as many terms as dense sets hold them, and those who need no other terms."""
        planes = planes_of(dense)
        found: list[int] = []
        for count in range(1, len(dense) + 1):
            if count in missing or count in self._alike:
                hit = exactly(planes, count)
                found += among(hit, missing.get(count, ()))
                if count in self._alike:
                    found += numbers_in(hit & self._alike[count].whole)
        return found

    def _renumber(self, moved: Moved | None) -> None:
        if moved is None:
            return
        for field in self._fields.values():
            field.renumber(moved)
        for needed, alike in self._alike.items():
            self._alike[needed] = DenseSet(moved[number] for number in numbers_in(alike))


def _kept(terms: Iterable[Term]) -> list[Term]:
    """Leave out what is never hit: an attachment that needs it never matches."""
    return [term for term in terms if term[1] is not Sign.NOTHING]
