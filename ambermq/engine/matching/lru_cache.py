"""Answers that were found lately, as many and as large as allowed: the one asked for longest ago goes first."""

from collections import OrderedDict
from collections.abc import Hashable, Sized
from typing import Any, Final, Generic, TypeVar, final

__all__ = ["LruCache", "recent_answers", "weight_of"]

_WEIGHT_EACH: Final = 100
"""An answer that is remembered may weigh so much in the middle: a pointer an attachment, and its question's text."""
_POINTER_BYTES: Final = 8

Key = TypeVar("Key", bound=Hashable)
Answer = TypeVar("Answer")


@final
class LruCache(Generic[Key, Answer]):
    """A bounded table of answers by question, of which None is no answer."""

    __slots__ = ("_answers", "_entries_max", "_weight", "_weight_max")

    def __init__(self, entries_max: int, weight_max: int) -> None:
        self._entries_max = entries_max
        self._weight_max = weight_max
        self._weight = 0
        self._answers: OrderedDict[Key, tuple[Answer, int]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._answers)

    def get(self, key: Key) -> Answer | None:
        """Return an answer that is still here."""
        known = self._answers.get(key)
        if known is None:
            return None
        self._answers.move_to_end(key)
        return known[0]

    def put(self, key: Key, answer: Answer, weight: int) -> None:
        """Remember an answer that is not here; one that is heavier than all may be is not remembered."""
        if weight > self._weight_max:
            return
        self._answers[key] = (answer, weight)
        self._weight += weight
        while len(self._answers) > self._entries_max or self._weight > self._weight_max:
            _, (_, gone) = self._answers.popitem(last=False)
            self._weight -= gone

    def clear(self) -> None:
        """Forget everything."""
        if self._answers:
            self._answers.clear()
            self._weight = 0


def recent_answers(cached_max: int) -> LruCache[Any, Any]:
    """Return a table of so many answers of ordinary weight."""
    return LruCache(cached_max, cached_max * _WEIGHT_EACH)


def weight_of(text: str, answer: Sized) -> int:
    """Return what it weighs that a text, which may come from a peer, leads to so much."""
    return 1 + len(answer) + len(text) // _POINTER_BYTES
