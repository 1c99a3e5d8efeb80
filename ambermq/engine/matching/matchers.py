"""A matcher for each class of muxer: the terms of an attachment's argument, and the terms that a message hits.

Arguments are checked when they are declared. An argument that does not fit its class, such as a number for a pattern,
matches nothing.

If removals have left more holes in the numbers of an index than it has attachments, a new index is built beside it.
Each change moves a few attachments, and the new index replaces the other one when it has all. One pass over 100,000
attachments would take 20 to 40 ms.
"""

import sys
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Sequence
from itertools import chain
from typing import Any, Final, NamedTuple, final

from ambermq.engine.matching.field_terms import FieldTerms, Hit, Key, Sign, key_of
from ambermq.engine.matching.lru_cache import LruCache, recent_answers, weight_of
from ambermq.engine.matching.published_fields import PublishedFields, SelectorGroup, groups_of
from ambermq.engine.matching.term_index import Term, TermIndex
from ambermq.engine.model.attachment import Argument, Attachment
from ambermq.engine.selectors.fields import ABSENT, Fields
from ambermq.engine.selectors.selector import Selector, parse_selector
from ambermq.engine.time_budget import MatchUnfinished, TimeBudget

__all__ = ["Destinations", "Everything", "Matcher", "Patterns", "Properties", "Selectors"]

_NAMES_PER_CHECK: Final = 64
_HOLES_MIN: Final = 64
_MOVES: Final = 2
"""The attachments that a change moves to the new index."""
_VISITS: Final = 64
"""The numbers that a change visits for that, at most; most are holes."""

_WHOLE: Final = ""
"""The name of the only field if terms have no names: the destination, or the text of a selector."""


class Matcher(ABC):
    """The attachments of a muxer of some class."""

    __slots__ = ("_index", "_moved_end", "_next_index", "_options")

    def __init__(self, separator: str | None = None, budget: TimeBudget | None = None) -> None:
        self._options = separator, budget
        self._index = TermIndex(separator, budget)
        self._next_index: TermIndex | None = None
        """The index that replaces the present one; None while that has few holes."""
        self._moved_end = 0
        """The next index has the attachments whose numbers are below this one."""

    def __len__(self) -> int:
        return len(self._index)

    def add(self, attachment: Attachment) -> None:
        """Add an attachment that is not in the index."""
        terms, end = self._terms(attachment.argument), self._index.numbers.end
        self._index.add(attachment, terms)
        if self._next_index is not None:
            if self._index.numbers.number_of(attachment) < self._moved_end:
                self._next_index.add(attachment, terms)
                self._moved_end += self._index.numbers.end - end
            self._move_some()

    def remove(self, attachment: Attachment) -> None:
        """Remove an attachment that is in the index."""
        terms, number = self._terms(attachment.argument), self._index.numbers.number_of(attachment)
        self._index.remove(attachment, terms)
        if self._next_index is not None and number < self._moved_end:
            self._next_index.remove(attachment, terms)
        holes = self._index.numbers.end - len(self._index)
        if self._next_index is None and holes > max(_HOLES_MIN, len(self._index)):
            self._next_index, self._moved_end = TermIndex(*self._options), 0
        if self._next_index is not None:
            self._move_some()

    def _move_some(self) -> None:
        """Move the next attachments to the next index, which replaces the present one at the end."""
        numbers, next_index = self._index.numbers, self._next_index
        assert next_index is not None, "the caller has checked it"
        moves, visits = _MOVES, _VISITS
        while moves and visits and self._moved_end < numbers.end:
            attachment = numbers.get(self._moved_end)
            self._moved_end += 1
            visits -= 1
            if attachment is not None:
                next_index.add(attachment, self._terms(attachment.argument))
                moves -= 1
        if self._moved_end >= numbers.end:
            self._index, self._next_index = next_index, None

    @abstractmethod
    def match(self, destination: str, fields: Fields | None) -> tuple[Attachment, ...]:
        """Return the attachments that match a message, in order of id."""

    def _terms(self, argument: Argument) -> Collection[Term]:
        """Return the distinct terms that a message must hit."""
        return ((_WHOLE, argument if isinstance(argument, str) else Sign.NOTHING),)


class _Rest(NamedTuple):
    """A match of a message's fields whose time was over."""

    fields: Fields
    names: Iterator[tuple[str, FieldTerms]]
    """The names that are left."""
    hits: list[Hit]


@final
class Everything(Matcher):
    """The matcher of SIMPLE, and of LOSSY without its draw."""

    __slots__ = ("_all",)

    def __init__(self) -> None:
        super().__init__()
        self._all: tuple[Attachment, ...] | None = None

    def add(self, attachment: Attachment) -> None:
        """Add an attachment that is not in the index."""
        self._all = None
        super().add(attachment)

    def remove(self, attachment: Attachment) -> None:
        """Remove an attachment that is in the index."""
        self._all = None
        super().remove(attachment)

    def match(self, destination: str, fields: Fields | None) -> tuple[Attachment, ...]:  # noqa: ARG002
        """Return all attachments."""
        if self._all is None:
            self._all = self._index.present()
        return self._all

    def _terms(self, argument: Argument) -> Collection[Term]:  # noqa: ARG002
        return ()


@final
class Destinations(Matcher):
    """The matcher of DESTINATION."""

    __slots__ = ()

    def match(self, destination: str, fields: Fields | None) -> tuple[Attachment, ...]:  # noqa: ARG002
        """Return the attachments for exactly this destination."""
        field = self._index.field(_WHOLE)
        return self._index.any_of(field.match(destination)) if field is not None else ()


@final
class Patterns(Matcher):
    """The matcher of WILD DESTINATION. It caches the matches of recent destinations until an attachment changes."""

    __slots__ = ("_recent",)

    def __init__(self, separator: str, cached_max: int, budget: TimeBudget) -> None:
        super().__init__(separator, budget)
        self._recent: LruCache[str, tuple[Attachment, ...]] = recent_answers(cached_max)

    def add(self, attachment: Attachment) -> None:
        """Add an attachment that is not in the index."""
        self._recent.clear()
        super().add(attachment)

    def remove(self, attachment: Attachment) -> None:
        """Remove an attachment that is in the index."""
        self._recent.clear()
        super().remove(attachment)

    def match(self, destination: str, fields: Fields | None) -> tuple[Attachment, ...]:  # noqa: ARG002
        """Return the attachments whose pattern matches the destination."""
        known = self._recent.get(destination)
        if known is not None:
            return known
        field = self._index.field(_WHOLE)
        found = self._index.any_of(field.match(destination)) if field is not None else ()
        self._recent.put(destination, found, weight_of(destination, found))
        return found


@final
class Properties(Matcher):
    """The matcher of PROPERTY, and with a separator of WILD PROPERTY.

    Two caches are valid until an attachment changes. One has the join of each recent combination of hits, by the
    identity of the sets: a set does not move before that. The other has the patterns that recent texts match.
    """

    __slots__ = ("_budget", "_is_wild", "_joined", "_rest", "_texts")

    def __init__(self, separator: str | None, cached_max: int, budget: TimeBudget) -> None:
        super().__init__(separator, budget)
        self._budget = budget
        self._rest: _Rest | None = None
        self._is_wild = separator is not None
        self._joined: LruCache[tuple[int, ...], tuple[Attachment, ...]] = recent_answers(cached_max)
        self._texts: LruCache[tuple[str, str], list[Hit]] = recent_answers(cached_max)

    def add(self, attachment: Attachment) -> None:
        """Add an attachment that is not in the index."""
        self._clear_caches()
        super().add(attachment)

    def remove(self, attachment: Attachment) -> None:
        """Remove an attachment that is in the index."""
        self._clear_caches()
        super().remove(attachment)

    def match(self, destination: str, fields: Fields | None) -> tuple[Attachment, ...]:  # noqa: ARG002
        """Return the attachments whose conditions all hold."""
        if fields is None:
            return ()
        hits = self._all_hits(fields)
        if not hits:
            return ()
        alone = hits[0] if len(hits) == 1 else None
        if isinstance(alone, Attachment) and self._index.needs_one:
            return (alone,)
        return self._join(hits)

    def _all_hits(self, fields: Fields) -> list[Hit]:
        """Return the hits of all fields that the attachments name, which may be many more than a message has."""
        rest, self._rest = self._rest, None
        if rest is None or rest.fields is not fields:
            rest = _Rest(fields, iter(self._index.fields()), [])
        names, hits = rest.names, rest.hits
        for number, one in enumerate(names, 1):
            try:
                if not number % _NAMES_PER_CHECK:
                    self._budget.check()
                name, field = one
                value = fields.get(name)
                if value is not ABSENT:
                    hits += self._hits(name, field, value) if self._is_wild else field.match(value)
            except MatchUnfinished:
                self._rest = _Rest(fields, chain([one], names), hits)
                raise
        return hits

    def _join(self, hits: Sequence[Hit]) -> tuple[Attachment, ...]:
        key = tuple(map(id, hits))
        known = self._joined.get(key)
        if known is None:
            known = self._index.all_of(hits)
            self._joined.put(key, known, weight_of("", known))
        return known

    def _hits(self, name: str, field: FieldTerms, value: Any) -> list[Hit]:
        if not isinstance(value, str):
            return field.match(value)
        known = self._texts.get((name, value))
        if known is None:
            known = field.match(value)
            self._texts.put((name, value), known, weight_of(value, known))
        return known

    def _clear_caches(self) -> None:
        self._joined.clear()
        self._texts.clear()
        self._rest = None

    def _terms(self, argument: Argument) -> Collection[Term]:
        if not isinstance(argument, tuple) or not argument:
            return ((_WHOLE, Sign.NOTHING),)
        return {(one.name, self._key(one.value) if one.has_value else Sign.PRESENT) for one in argument}

    def _key(self, value: Any) -> Key:
        return key_of(value) if isinstance(value, str) or not self._is_wild else Sign.NOTHING


@final
class Selectors(Matcher):
    """The matcher of SELECTOR. Attachments with the same text share one selector, evaluated once per message."""

    __slots__ = ("_groups", "_selectors")

    def __init__(self) -> None:
        super().__init__()
        self._selectors: dict[str, Selector] = {}
        self._groups: list[SelectorGroup] | None = None

    def add(self, attachment: Attachment) -> None:
        """Add an attachment. Raises SelectorError, without a change, if its text is not a selector."""
        text = attachment.argument
        if isinstance(text, str) and text not in self._selectors:
            # Limits hold for what is declared: an attachment that exists works whatever they are now.
            self._selectors[text] = parse_selector(text, bytes_max=sys.maxsize)
            self._groups = None
        super().add(attachment)

    def remove(self, attachment: Attachment) -> None:
        """Remove an attachment that is in the index."""
        super().remove(attachment)
        text = attachment.argument
        field = self._index.field(_WHOLE)
        if isinstance(text, str) and (field is None or field.get(text) is None):
            del self._selectors[text]
            self._groups = None

    def match(self, destination: str, fields: Fields | None) -> tuple[Attachment, ...]:  # noqa: ARG002
        """Return the attachments whose selector is true for the message."""
        field = self._index.field(_WHOLE)
        if fields is None or field is None:
            return ()
        published = fields if type(fields) is PublishedFields else PublishedFields(fields)
        hits: list[Hit] = []
        if self._groups is None:
            self._groups = groups_of(self._selectors)
        for text in published.select(self._groups):
            hits += field.match(text)
        return self._index.any_of(hits)
