"""The entries whose messages a repair of the log could not save; the next start removes them from their queues.

Rule 1. Ranges of lost offsets are compared with the ordered entries of queues. No record is opened, and a chunk of
words outside all ranges costs two comparisons.
Rule 2. A large message is lost with any of its chunks, even if its publish record is whole. One that has come from
        another queue is lost with its publish record.
Rule 3. This runs after the event Started is applied. So no entry is acquired.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import Final

from ambermq.engine.entries.entry_word import WORD_BYTES, unpack_words
from ambermq.engine.events import Damaged
from ambermq.engine.model.queue import Queue
from ambermq.engine.model.state import State
from ambermq.snapshot.persistent_queue import PersistentQueue

__all__ = ["RUN_WORDS_MAX", "damage_of"]

RUN_WORDS_MAX: Final = 1024
"""The maximum of entries in one event Damaged, which is one record."""

_RUN_BYTES: Final = RUN_WORDS_MAX * WORD_BYTES
_WORD_SHIFT: Final = 16

_Ranges = Sequence[tuple[int, int]]


def damage_of(state: State, lost: _Ranges, *, next_offset: int, time_us: int) -> Iterator[Damaged]:
    """Yield events from `next_offset` on that remove from `state` the entries whose messages are in `lost`.

    `lost` has ranges of offsets, first and end. No entry of `state` may be acquired.
    """
    if not lost:
        return
    for queue_id in sorted(state.queues.keys()):
        queue = state.queues[queue_id]
        assert not queue.acquired
        ranges = _ranges_of(queue, lost)
        words = b"".join(_words_in(one, ranges) for one in queue.waiting_lists)
        for at in range(0, len(words), _RUN_BYTES):
            yield Damaged(next_offset, time_us, queue_id, words[at : at + _RUN_BYTES])
            next_offset += 1


def _ranges_of(queue: Queue, lost: _Ranges) -> _Ranges:
    """Return the sorted ranges of lost entries: `lost` itself, and each message with a part in a lost record."""
    others = [
        (entry, entry + 1)
        for entry, columns in queue.entries.items()
        if (columns.chunks or columns.origin)
        and any(first <= part < end for part in (*columns.chunks, columns.origin or entry) for first, end in lost)
    ]
    return sorted([*lost, *others])


def _words_in(words: PersistentQueue, ranges: _Ranges) -> bytes:
    """Return, packed, those of the ordered words whose entries are in the sorted `ranges`."""
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
        # The search begins at the last end, so overlapping ranges give no word twice.
        start = bisect_left(unpacked, low << _WORD_SHIFT, end)
        end = bisect_left(unpacked, high << _WORD_SHIFT, start)
        found.append(run[start * WORD_BYTES : end * WORD_BYTES])
    return b"".join(found)
