"""Entries that came back, kept in the order of their offsets: three released in any order return in theirs."""

from engine.word import WORD_BYTES, pack_words, unpack_words
from snapshot.queue import PersistentQueue

__all__ = ["merge_returned"]


def merge_returned(returned: PersistentQueue, words: bytes) -> PersistentQueue:
    """Return the ordered queue with packed `words` (in any order) put where they belong.

    At the head, the usual place, this costs what the run costs; between others the queue is sorted anew.
    """
    if len(words) > WORD_BYTES:
        words = pack_words(sorted(unpack_words(words)))
    if not words:
        return returned
    if not returned or words[-WORD_BYTES:][::-1] < returned.head(1)[::-1]:
        return returned.push_front(words)
    return _sorted_anew(returned, words)


def _sorted_anew(returned: PersistentQueue, words: bytes) -> PersistentQueue:
    # Two ordered runs: the sort merges them in linear time.
    both = unpack_words(returned.to_bytes() + words)
    return PersistentQueue.empty().push(pack_words(sorted(both)))
