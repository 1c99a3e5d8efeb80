"""A least-recently-used cache, bounded by the count and by the weight of its answers."""

from collections import OrderedDict
from collections.abc import Hashable, Sized
from typing import Any, Final, Generic, TypeVar, final

__all__ = ["LruCache", "recent_answers", "weight_of"]

_WEIGHT_EACH: Final = 100
"""The mean weight allowed for one answer. Weight 1 is a pointer: one for each attachment, plus the key's text."""
_POINTER_BYTES: Final = 8

Key = TypeVar("Key", bound=Hashable)
Answer = TypeVar("Answer")


@final
class LruCache(Generic[Key, Answer]):
    """A bounded table of answers by key. None is not a valid answer."""

    __slots__ = ("_answers", "_entries_max", "_weight", "_weight_max")

    def __init__(self, entries_max: int, weight_max: int) -> None:
        self._entries_max = entries_max
        self._weight_max = weight_max
        self._weight = 0
        self._answers: OrderedDict[Key, tuple[Answer, int]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._answers)

    def get(self, key: Key) -> Answer | None:
        """Return the answer of a key, None if the cache does not have it."""
        known = self._answers.get(key)
        if known is None:
            return None
        self._answers.move_to_end(key)
        return known[0]

    def put(self, key: Key, answer: Answer, weight: int) -> None:
        """Store an answer that is not in the cache. An answer above the maximum weight is not stored."""
        if weight > self._weight_max:
            return
        self._answers[key] = (answer, weight)
        self._weight += weight
        while len(self._answers) > self._entries_max or self._weight > self._weight_max:
            _, (_, gone) = self._answers.popitem(last=False)
            self._weight -= gone

    def clear(self) -> None:
        """Remove all answers."""
        if self._answers:
            self._answers.clear()
            self._weight = 0


def recent_answers(cached_max: int) -> LruCache[Any, Any]:
    """Return a cache for `cached_max` answers of ordinary weight."""
    return LruCache(cached_max, cached_max * _WEIGHT_EACH)


def weight_of(text: str, answer: Sized) -> int:
    """Return the weight of an answer and its key; the text of the key may come from a peer."""
    return 1 + len(answer) + len(text) // _POINTER_BYTES
