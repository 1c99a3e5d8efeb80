"""Returned entries in the order of their offsets: the order of the releases does not matter."""

from bisect import bisect_left
from typing import Final

from ambermq.engine.model.entry_word import WORD_BYTES, pack_words, unpack_words
from ambermq.snapshot.persistent_queue import PersistentQueue

__all__ = ["merge_returned"]

_SPLICED_SHARE: Final = 16
"""A run is spliced in if it is less than 1/16 of the words that it goes between: one splice costs as much as sorting 16
words."""


def merge_returned(returned: PersistentQueue, words: bytes) -> PersistentQueue:
    """Return the ordered queue with packed `words` (in any order) merged in.

    At either end, the usual case, the cost is that of the run. In between, the words before and among the run are
    copied as bytes. This is fast enough if many consumers of one queue end together, each with words of every region.
    """
    if not words:
        return returned
    run = unpack_words(words)
    if len(run) > 1:
        run = tuple(sorted(run))
        words = pack_words(run)
    if not returned or _number(returned.last()) < run[0]:
        return returned.push(words)
    if run[-1] < _number(returned.head(1)):
        return returned.push_front(words)
    return _between(returned, run)


def _between(returned: PersistentQueue, run: tuple[int, ...]) -> PersistentQueue:
    before, rest = returned.pop(_count_below(returned, run[0]))
    among, rest = rest.pop(_count_below(rest, run[-1]))
    return rest.push_front(before + _merged(among, run))


def _merged(among: bytes, run: tuple[int, ...]) -> bytes:
    """Return two ordered runs as one, packed."""
    if len(run) * _SPLICED_SHARE * WORD_BYTES >= len(among):
        # The sort merges them in linear time.
        return pack_words(sorted(unpack_words(among) + run))
    numbers, pieces, start = memoryview(among).cast("Q"), list[bytes](), 0
    for word in run:
        end = bisect_left(numbers, word, start)
        pieces += (among[start * WORD_BYTES : end * WORD_BYTES], word.to_bytes(WORD_BYTES, "little"))
        start = end
    pieces.append(among[start * WORD_BYTES :])
    return b"".join(pieces)


def _count_below(ordered: PersistentQueue, word: int) -> int:
    count = 0
    for chunk in ordered.chunks():
        if _number(chunk[-WORD_BYTES:]) >= word:
            return count + bisect_left(memoryview(chunk).cast("Q"), word)
        count += len(chunk) // WORD_BYTES
    return count


def _number(word: bytes) -> int:
    return int.from_bytes(word, "little")
