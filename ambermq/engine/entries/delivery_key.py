"""The key of a delivery: the attempt of its message and its word, as one number.

    attempt u64 | word u64

A message whose queue has no locks has one delivery at a time, and its key is its word.
"""

from typing import Final

__all__ = ["attempt_of", "delivery_key", "word_of"]

_WORD_BITS: Final = 64
_WORD_MASK: Final = (1 << _WORD_BITS) - 1


def delivery_key(word: int, attempt: int) -> int:
    """Return the key of a delivery."""
    return attempt << _WORD_BITS | word


def word_of(key: int) -> int:
    """Return the word of a delivery."""
    return key & _WORD_MASK


def attempt_of(key: int) -> int:
    """Return the attempt of a delivery."""
    return key >> _WORD_BITS
