"""What a repair could not save, in terms of queues: entries whose messages are gone are set aside at the next start.

Rule 1. Ranges of offsets are compared with entries as they lie in queues, in order: no record is opened, and a chunk of
words that lies outside costs two comparisons.
Rule 2. A large message is gone with any of its pieces, though its own record may be whole.
Rule 3. It comes after the broker's start is applied, so that nothing is acquired: what was has come back by then.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import Final

from ambermq.engine.events import Damaged
from ambermq.engine.model.entry_word import WORD_BYTES, unpack_words
from ambermq.engine.model.queue import Queue
from ambermq.engine.model.state import State
from ambermq.snapshot.persistent_queue import PersistentQueue

__all__ = ["RUN_WORDS_MAX", "damage_of"]

RUN_WORDS_MAX: Final = 1024
"""Entries that one event sets aside, which is one record."""

_RUN_BYTES: Final = RUN_WORDS_MAX * WORD_BYTES
_WORD_SHIFT: Final = 16

_Ranges = Sequence[tuple[int, int]]


def damage_of(state: State, lost: _Ranges, *, next_offset: int, time_us: int) -> Iterator[Damaged]:
    """Yield the events, from `next_offset` on, that take out of `state` the entries whose messages lie in `lost`.

    `lost` are ranges of offsets, first and end. Nothing may be acquired in `state`.
    """
    if not lost:
        return
    for queue_id in sorted(state.queues.keys()):
        queue = state.queues[queue_id]
        assert not queue.acquired
        ranges = _ranges_of(queue, lost)
        words = _words_in(queue.returned, ranges) + _words_in(queue.ready, ranges)
        for at in range(0, len(words), _RUN_BYTES):
            yield Damaged(next_offset, time_us, queue_id, words[at : at + _RUN_BYTES])
            next_offset += 1


def _ranges_of(queue: Queue, lost: _Ranges) -> _Ranges:
    """Return the ranges of entries that are gone, sorted: those lost, and each large message that lacks a piece."""
    large = [
        (entry, entry + 1)
        for entry, columns in queue.entries.items()
        if columns.chunks and any(first <= chunk < end for chunk in columns.chunks for first, end in lost)
    ]
    return sorted([*lost, *large])


def _words_in(words: PersistentQueue, ranges: _Ranges) -> bytes:
    """Return those of a queue's words, which are ordered, whose entries lie in sorted `ranges`, packed."""
    found: list[bytes] = []
    for run in words.chunks():
        first = int.from_bytes(run[:WORD_BYTES], "little") >> _WORD_SHIFT
        last = int.from_bytes(run[-WORD_BYTES:], "little") >> _WORD_SHIFT
        if any(low <= last and first < high for low, high in ranges):
            found.append(_cut(run, ranges))
    return b"".join(found)


def _cut(run: bytes, ranges: _Ranges) -> bytes:
    unpacked, found, end = unpack_words(run), list[bytes](), 0
    for low, high in ranges:
        # Where ranges overlap, none of it is taken twice.
        start = bisect_left(unpacked, low << _WORD_SHIFT, end)
        end = bisect_left(unpacked, high << _WORD_SHIFT, start)
        found.append(run[start * WORD_BYTES : end * WORD_BYTES])
    return b"".join(found)
