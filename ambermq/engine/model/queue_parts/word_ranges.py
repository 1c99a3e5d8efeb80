"""The words of an ordered list whose entries are in a range of offsets."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from heapq import merge

from ambermq.engine.entries.entry_word import WORD_BYTES, entry_of, unpack_words
from ambermq.snapshot.persistent_queue import PersistentQueue

__all__ = ["last_entry", "words_below", "words_between", "words_from"]


def words_below(words: PersistentQueue, before: int) -> bytes:
    """Return the packed words at the head of an ordered queue whose entries are below an offset."""
    runs = []
    for run in words.chunks():
        last = entry_of(int.from_bytes(run[-WORD_BYTES:], "little"))
        if last >= before:
            kept = [word for word in unpack_words(run) if entry_of(word) < before]
            runs.append(run[: len(kept) * WORD_BYTES])
            break
        runs.append(run)
    return b"".join(runs)


def words_between(words: PersistentQueue, first: int, end: int) -> bytes:
    """Return the packed words of an ordered queue whose entries are from `first` up to `end`."""
    found, above = b"", (first << 16) - 1
    while run := words.run_above(above):
        # A range is often one entry of a long run.
        size = bisect_left(memoryview(run).cast("Q"), end << 16) * WORD_BYTES
        found += run[:size]
        if size < len(run):
            break
        above = int.from_bytes(run[-WORD_BYTES:], "little")
    return found


def words_from(lists: Iterable[PersistentQueue], first: int) -> Iterator[int]:
    """Yield the words of ordered lists whose entries are at `first` or behind it, in order."""
    return merge(*[_above(words, (first << 16) - 1) for words in lists])


def _above(words: PersistentQueue, above: int) -> Iterator[int]:
    while run := words.run_above(above):
        numbers = unpack_words(run)
        yield from numbers
        above = numbers[-1]


def last_entry(words: PersistentQueue) -> int:
    """Return the entry of the last word of a queue; -1 without one."""
    return entry_of(int.from_bytes(words.last(), "little")) if words else -1
