"""A queue entry is one u64 word: the offset of its publish record, and a code of its message's size.

    bits 63..16  offset   48 bits: the entry's identity; words sort by it
    bits 15..11  exponent  5 bits  | size = mantissa << exponent, rounded up when the word is made; the same value is
    bits 10..0   mantissa 11 bits  | added and subtracted, so byte counts never drift

Runs of words are packed: `bytes` of little-endian u64. Queues and records hold them in this form.
"""

from collections.abc import Sequence
from itertools import count as count_from
from operator import add
from struct import pack, unpack

__all__ = [
    "WORD_BYTES",
    "entry_of",
    "make_run",
    "make_words",
    "pack_words",
    "ranges_of",
    "size_code",
    "size_of",
    "total_size",
    "unpack_words",
]

WORD_BYTES = 8
_CODE_BITS = 16
_OFFSET_STEP = 1 << _CODE_BITS
_MANTISSA = 0x7FF


def size_code(size: int) -> int:
    """Return the 16-bit code of a size in bytes, rounded up to 11 significant bits."""
    if size <= _MANTISSA:
        return size
    exponent = size.bit_length() - 11
    mantissa = -(-size >> exponent)
    if mantissa > _MANTISSA:
        mantissa >>= 1
        exponent += 1
    return exponent << 11 | mantissa


def size_of(word: int) -> int:
    """Return the size in bytes that a word accounts for."""
    return (word & _MANTISSA) << (word >> 11 & 31)


def entry_of(word: int) -> int:
    """Return the offset of the publish record of an entry."""
    return word >> _CODE_BITS


def make_words(first: int, sizes: Sequence[int]) -> bytes:
    """Return the packed words of entries at consecutive offsets from `first`, with these sizes in bytes."""
    return make_run(first, sizes)[0]


def make_run(first: int, sizes: Sequence[int]) -> tuple[bytes, int]:
    """Return the words of `make_words`, and the sum of the bytes that they account for."""
    # The code of a small size is the size.
    largest, count = max(sizes, default=0), len(sizes)
    is_exact = largest <= _MANTISSA
    if count > 1 and min(sizes) == largest:
        word = first << _CODE_BITS | size_code(largest)
        words = pack(f"<{count}Q", *range(word, word + count * _OFFSET_STEP, _OFFSET_STEP))
        return words, count * size_of(word)
    codes = sizes if is_exact else map(size_code, sizes)
    words = pack(f"<{len(sizes)}Q", *map(add, codes, count_from(first << _CODE_BITS, _OFFSET_STEP)))
    return words, sum(sizes) if is_exact else total_size(words)


def pack_words(words: Sequence[int]) -> bytes:
    """Return words packed."""
    return pack(f"<{len(words)}Q", *words)


def unpack_words(words: bytes) -> tuple[int, ...]:
    """Return packed words as integers."""
    return unpack(f"<{len(words) // WORD_BYTES}Q", words)


def ranges_of(words: bytes) -> list[list[int]]:
    """Return the entries of packed words as [first, last] of consecutive ones, in their order."""
    ranges: list[list[int]] = []
    for word in unpack_words(words):
        entry = entry_of(word)
        if ranges and entry == ranges[-1][1] + 1:
            ranges[-1][1] = entry
        else:
            ranges.append([entry, entry])
    return ranges


def total_size(words: bytes) -> int:
    """Return the bytes that packed words account for together."""
    length = len(words)
    if length == WORD_BYTES:
        word = int.from_bytes(words, "little")
        return (word & _MANTISSA) << (word >> 11 & 31)
    # In most runs all messages have one size: the code, the lowest two bytes, is the same in each word.
    low, high = words[::WORD_BYTES], words[1::WORD_BYTES]
    count = length // WORD_BYTES
    if count and low.count(low[0]) == count == high.count(high[0]):
        word = low[0] | high[0] << 8
        return count * ((word & _MANTISSA) << (word >> 11))
    size = 0
    for word in unpack_words(words):
        size += (word & _MANTISSA) << (word >> 11 & 31)
    return size
