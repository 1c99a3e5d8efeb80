"""The fields of a large message, for evaluations that may pause.

A selector may search a text of many megabytes for hundreds of patterns. So each term that reads a long text asks for
its time. If that is over, the evaluation raises MatchUnfinished, and its next try finds the terms that are answered.
"""

from collections.abc import Callable, Hashable
from typing import Any, Final, final

from ambermq.engine.selectors.fields import Fields
from ambermq.engine.selectors.like import Like, LikeState
from ambermq.engine.time_budget import TimeBudget

__all__ = ["LONG_BYTES", "KnownTerms", "PausableFields", "pausable_of"]

LONG_BYTES: Final = 8192
"""A longer text or binary is long. Only a message that is as long can have one."""

KnownTerms = dict[Hashable, Any]
"""What is known of the terms of one evaluation: answers, states of searches, and converted values."""


@final
class PausableFields:
    """The fields of one message, for one try of an evaluation; each try answers at least a part of one term."""

    __slots__ = ("_budget", "_fields", "_has_asked", "_known")

    def __init__(self, fields: Fields, budget: TimeBudget, known: KnownTerms) -> None:
        self._fields = fields
        self._budget = budget
        self._known = known
        self._has_asked = False

    def get(self, name: str) -> Any:
        """Return the value of a field, as `Fields.get`."""
        return self._fields.get(name)

    def like(self, like: Like, text: str) -> bool:
        """Return whether a long text matches a pattern of the selector. Raises MatchUnfinished."""
        found: bool | LikeState | None = self._known.get(like)
        while found is None or type(found) is tuple:
            self._ask()
            found = self._known[like] = like.advance(text, found)
        return found is True

    def shown(self, name: str, show: Callable[[Any], Any], value: Any) -> Any:
        """Return a long value as a conversion shows it. Raises MatchUnfinished."""
        key = (name, show)
        if key not in self._known:
            self._ask()
            self._known[key] = show(value)
        return self._known[key]

    def _ask(self) -> None:
        if self._has_asked:
            self._budget.check()
        self._has_asked = True


def pausable_of(get: Callable[[str], Any]) -> PausableFields | None:
    """Return the PausableFields whose method `get` is, None if it belongs to other fields."""
    owner = getattr(get, "__self__", None)
    return owner if type(owner) is PausableFields else None
