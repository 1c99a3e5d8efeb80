"""The fields of one published message, with the answers of the selectors that it was tested with.

A message may be tested with thousands of selectors. If the time of a tick is over, the next tick goes on with the same
PublishedFields, and tests no selector twice.

Rule 1. Selectors are tested in groups. The clock is read once for a group, because a look at it costs as much as a
        short selector.
Rule 2. A selector alone in its group is known by its text: so subscriptions with equal selectors cost one test.
"""

from collections.abc import Hashable, Iterable, Sized
from typing import NamedTuple, final

from ambermq.engine.errors import Refused
from ambermq.engine.selectors.fields import Fields
from ambermq.engine.selectors.pausable_fields import LONG_BYTES, KnownTerms, PausableFields
from ambermq.engine.selectors.selector import LONG_TERM_STEPS, Selector
from ambermq.engine.time_budget import MatchUnfinished, TimeBudget

__all__ = ["PublishedFields", "SelectorGroup", "groups_of"]


class SelectorGroup(NamedTuple):
    """Selectors that are tested between two looks at the clock."""

    key: Hashable
    """The identity of the group: the text of a single selector, else an object of its own."""
    selectors: tuple[tuple[str, Selector], ...]
    """Pairs of text and selector."""


def groups_of(selectors: dict[str, Selector]) -> list[SelectorGroup]:
    """Return selectors, by text, in groups."""
    groups: list[SelectorGroup] = []
    pairs: list[tuple[str, Selector]] = []
    steps = 0
    for pair in selectors.items():
        steps += pair[1].steps
        if pairs and steps > LONG_TERM_STEPS:
            groups.append(_group_of(pairs))
            pairs, steps = [], pair[1].steps
        pairs.append(pair)
    return [*groups, _group_of(pairs)] if pairs else groups


def _group_of(pairs: list[tuple[str, Selector]]) -> SelectorGroup:
    return SelectorGroup(pairs[0][0] if len(pairs) == 1 else object(), tuple(pairs))


@final
class PublishedFields:
    """The fields of a message, and the answers of selectors."""

    __slots__ = ("_answers", "_budget", "_fields", "_known", "_selectors_left", "body", "get")

    def __init__(
        self, fields: Fields, body: Sized | None = None, budget: TimeBudget | None = None, selectors_max: int = 1 << 62
    ) -> None:
        self.body = body
        """The encoded message."""
        self.get = fields.get
        """As `Fields.get`."""
        self._answers: dict[Hashable, list[str]] = {}
        """The selectors of each tested group that are true."""
        self._fields = fields
        self._known: KnownTerms | None = {} if body is not None and len(body) > LONG_BYTES else None
        """The terms of a group that is not finished, for a large message."""
        self._budget = budget or TimeBudget()
        self._selectors_left = selectors_max

    def select(self, groups: Iterable[SelectorGroup]) -> list[str]:
        """Return the texts of the selectors that are true for the message.

        Raises MatchUnfinished if the time is over, and Refused if the message needs too many selectors.
        """
        selected: list[str] = []
        for key, selectors in groups:
            found = self._answers.get(key)
            if found is None:
                if self._budget.is_spent():
                    raise MatchUnfinished
                if self._selectors_left < len(selectors):
                    why = "it is for more selectors than a message may be tested with (selectors_per_message_max)"
                    raise Refused("amqp:resource-limit-exceeded", why)
                found = self._answers[key] = self._tested(selectors)
            selected += found
        return selected

    def _tested(self, selectors: tuple[tuple[str, Selector], ...]) -> list[str]:
        fields = self._fields if self._known is None else PausableFields(self._fields, self._budget, self._known)
        found = [text for text, selector in selectors if selector.matches(fields)]
        self._selectors_left -= len(selectors)
        if self._known:
            self._known.clear()
        return found
