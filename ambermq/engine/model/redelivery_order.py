"""Returned entries in the order of their offsets: the order of the releases does not matter."""

from typing import Final

from ambermq.engine.model.entry_word import WORD_BYTES, pack_words, unpack_words
from ambermq.snapshot.chunk_tree import merged
from ambermq.snapshot.persistent_queue import PersistentQueue

__all__ = ["merge_returned"]

_INSERTED_MAX: Final = 1024
"""At most this many words are inserted each at its place. For more, all words up to the last of them are copied."""


def merge_returned(returned: PersistentQueue, words: bytes) -> PersistentQueue:
    """Return the ordered queue with packed `words` (in any order) merged in.

    At either end, the usual case, the cost is that of the run. A short run costs O(log n) for each word. A long run
    copies the words before and among it as bytes. This is fast enough if many consumers of one queue end together,
    each with words of every region.
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
    if len(run) <= _INSERTED_MAX:
        return returned.insert_ordered(list(run))
    before, rest = returned.pop(returned.count_below(run[0]))
    among, rest = rest.pop(rest.count_below(run[-1]))
    return rest.push_front(before + merged(among, list(run)))


def _number(word: bytes) -> int:
    return int.from_bytes(word[:WORD_BYTES], "little")
