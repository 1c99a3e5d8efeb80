"""An inverted index from terms to attachments (the matching of the OpenAMQ design).

An attachment is stored under each of its terms, and matches if a message hits all of them. A message costs one lookup
for each field that the wiring names, plus the length of the hits. The number of attachments does not matter.

Rule 1. The numbers of sparse sets are counted one by one. Dense sets are only tested for these numbers, because
        counting them one by one would cost as much as there are attachments.
Rule 2. An attachment with only dense terms is in no sparse set. Such attachments are counted all at once, as bits.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, ItemsView, Iterable, Mapping, Sequence
from typing import final

from ambermq.engine.matching.attachment_numbers import AttachmentNumbers, Moved
from ambermq.engine.matching.field_terms import FieldTerms, Hit, Key, Sign
from ambermq.engine.matching.hit_set import DenseSet, numbers_in, numbers_with_count, planes_of, select_numbers
from ambermq.engine.model.attachment import Attachment
from ambermq.engine.time_budget import TimeBudget

__all__ = ["Term", "TermIndex"]

Term = tuple[str, Key]
"""The name of a field and the key of the term."""


@final
class TermIndex:
    """Attachments by their terms. With a separator the terms are patterns."""

    __slots__ = ("_alike", "_budget", "_fields", "_numbers", "_separator", "needs_one")

    def __init__(self, separator: str | None = None, budget: TimeBudget | None = None) -> None:
        self._separator = separator
        self._budget = budget
        self._numbers = AttachmentNumbers()
        self._fields: dict[str, FieldTerms] = {}
        self._alike: dict[int, DenseSet] = {}
        """The numbers of attachments, by the count of their terms."""
        self.needs_one = True
        """Whether every attachment has one term, so each hit is a match."""

    def __len__(self) -> int:
        return len(self._numbers)

    def add(self, attachment: Attachment, terms: Collection[Term]) -> None:
        """Add an attachment that is not in the index, under its distinct terms."""
        self._renumber(self._numbers.insert(attachment, len(terms)))
        self._alike.setdefault(len(terms), DenseSet()).add(self._numbers.number_of(attachment))
        self.needs_one = self._alike.keys() <= {1}
        for name, key in _matchable(terms):
            if name not in self._fields:
                self._fields[name] = FieldTerms(self._separator, self._budget)
            self._fields[name].add(key, attachment, self._numbers)

    def remove(self, attachment: Attachment, terms: Collection[Term]) -> None:
        """Remove an attachment from the terms that it was added with."""
        for name, key in _matchable(terms):
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

    @property
    def numbers(self) -> AttachmentNumbers:
        """The attachments by number. Only this index changes them."""
        return self._numbers

    def fields(self) -> ItemsView[str, FieldTerms]:
        """Return the fields that have terms, by name."""
        return self._fields.items()

    def field(self, name: str) -> FieldTerms | None:
        """Return the terms of one field, None if it has none."""
        return self._fields.get(name)

    def present(self) -> tuple[Attachment, ...]:
        """Return all attachments, in order of id."""
        return self._numbers.present()

    def any_of(self, hits: Sequence[Hit]) -> tuple[Attachment, ...]:
        """Return the attachments in the hits, in order of id; each has only one term."""
        if not hits:
            return ()
        if len(hits) == 1 and isinstance(hits[0], Attachment):
            return (hits[0],)
        numbers: list[int] = []
        for hit in hits:
            numbers.extend(self._numbers_of(hit))
        return self._numbers.at(sorted(numbers))

    def all_of(self, hits: Sequence[Hit]) -> tuple[Attachment, ...]:
        """Return the attachments whose terms were all hit, in order of id."""
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
        """Return the numbers whose missing terms are all in dense sets, and those that have only dense terms."""
        planes = planes_of(dense)
        found: list[int] = []
        for count in range(1, len(dense) + 1):
            if count in missing or count in self._alike:
                hit = numbers_with_count(planes, count)
                found += select_numbers(hit, missing.get(count, ()))
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


def _matchable(terms: Iterable[Term]) -> list[Term]:
    """Return the terms without those that are never hit: their attachments never match."""
    return [term for term in terms if term[1] is not Sign.NOTHING]
