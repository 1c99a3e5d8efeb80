"""The runs of a snapshot: the words of each list of each queue, and the times of messages.

    WORDS       runs: queue i64 | consumer i64 | list u32 | count u32 | count words
    DUES        runs: queue i64 | count u64 | count entries u64 | count times u64: scheduled messages
    EXPIRIES    the same: messages with a time to live of their own

A run of words with keys has three words for each message: its word, and its key of 16 bytes.
"""

from collections import Counter
from collections.abc import Iterator
from operator import ge, itemgetter
from struct import Struct
from typing import Any, Final

from ambermq.engine.entries.entry_word import WORD_BYTES, unpack_words
from ambermq.engine.entries.priority import PRIORITY_MAX
from ambermq.engine.model.queue import Queue
from ambermq.engine.model.queue_parts.last_values import LastValues
from ambermq.engine.model.state import State
from ambermq.engine.snapshots.image_blocks import ImageFault, in_order, sorted_items
from ambermq.snapshot.block_file import Block, BlockKind
from ambermq.snapshot.persistent_column import EMPTY_COLUMN, PersistentColumn
from ambermq.snapshot.persistent_queue import EMPTY_QUEUE, PersistentQueue

__all__ = ["WordRuns", "due_blocks", "expiry_blocks", "word_blocks"]

_RUN: Final = Struct("<qqII")
_TIMES: Final = Struct("<qQ")
_WORDS_BYTES: Final = 64 << 10
"""The approximate size of a block of words."""
_KEYS_AT_ONCE: Final = 256
READY, RETURNED, ACQUIRED, ASIDE, DELAYED, SCHEDULED = 1, 2, 3, 4, 5, 6
REPLACED, _KEYED = 12, 13
_KEY_ROW: Final = Struct("<Q16s")
"""A word and its key, in a run of the list _KEYED."""
_KEY_WORDS: Final = _KEY_ROW.size // WORD_BYTES
IDS: Final = 8
"""The list of message-ids, whose words are no messages."""
_UPLOAD = 64
"""The chunk records of a message that is arriving; the queue's id is the offset of the first one."""
LEVEL_READY, LEVEL_RETURNED = 16, 32
"""The list of priority 0; the others follow."""
_PRIORITIES: Final = range(PRIORITY_MAX + 1)
_LISTS: Final = frozenset(
    {READY, RETURNED, ACQUIRED, ASIDE, DELAYED, SCHEDULED, IDS, REPLACED, _KEYED, _UPLOAD}
    | {kind + priority for kind in (LEVEL_READY, LEVEL_RETURNED) for priority in _PRIORITIES}
)


def word_blocks(state: State) -> Iterator[Block]:
    """Yield the words of all lists of a state."""
    parts: list[bytes] = []
    size = 0
    for queue_id, consumer, kind, words in _lists(state):
        for run in words:
            parts += (_RUN.pack(queue_id, consumer, kind, len(run) // WORD_BYTES), run)
            size += _RUN.size + len(run)
            if size >= _WORDS_BYTES:
                yield Block(BlockKind.WORDS, parts)
                parts, size = [], 0
    if parts:
        yield Block(BlockKind.WORDS, parts)


def _lists(state: State) -> Iterator[tuple[int, int, int, Iterator[bytes]]]:
    """Yield each list of each queue as queue, consumer, kind and packed runs."""
    for queue_id, consumer, kind, words in _word_lists(state):
        yield queue_id, consumer, kind, words.chunks()
    for queue in in_order(state.queues):
        if queue.keyed is not None:
            yield queue.id, 0, REPLACED, queue.keyed.replaced.chunks()
            yield queue.id, 0, _KEYED, _key_runs(queue, queue.keyed)


def _key_runs(queue: Queue, values: LastValues) -> Iterator[bytes]:
    """Yield the words with keys, each before its key, in the order of the lists of the queue."""
    for words in (*queue.waiting_lists, *map(itemgetter(1), sorted_items(queue.acquired))):
        for run in words.chunks():
            for start in range(0, len(run), _KEYS_AT_ONCE * WORD_BYTES):
                some = memoryview(run[start : start + _KEYS_AT_ONCE * WORD_BYTES]).cast("Q")
                rows = [_KEY_ROW.pack(word, key) for word in some if (key := values.key_of(word)) is not None]
                if rows:
                    yield b"".join(rows)


def due_blocks(state: State) -> Iterator[Block]:
    """Yield the times of all scheduled messages."""
    for queue in in_order(state.queues):
        yield from _time_blocks(BlockKind.DUES, queue.id, queue.dues)


def expiry_blocks(state: State) -> Iterator[Block]:
    """Yield the expiries of all messages that have a time to live of their own."""
    for queue in in_order(state.queues):
        yield from _time_blocks(BlockKind.EXPIRIES, queue.id, queue.expiries)


def _time_blocks(kind: BlockKind, queue: int, times: PersistentColumn) -> Iterator[Block]:
    parts: list[bytes] = []
    size = 0
    for keys, values in times.blocks():
        parts += (_TIMES.pack(queue, len(keys) // WORD_BYTES), keys, values)
        size += _TIMES.size + len(keys) + len(values)
        if size >= _WORDS_BYTES:
            yield Block(kind, parts)
            parts, size = [], 0
    if parts:
        yield Block(kind, parts)


def _word_lists(state: State) -> Iterator[tuple[int, int, int, PersistentQueue]]:
    for queue in in_order(state.queues):
        yield queue.id, 0, READY, queue.ready
        yield queue.id, 0, RETURNED, queue.returned
        yield queue.id, 0, ASIDE, queue.aside
        yield queue.id, 0, DELAYED, queue.delayed
        yield queue.id, 0, SCHEDULED, queue.scheduled
        for level in queue.levels:
            yield queue.id, 0, LEVEL_READY + level.priority, level.ready
            yield queue.id, 0, LEVEL_RETURNED + level.priority, level.returned
        yield queue.id, 0, IDS, queue.ids.order
        for consumer, words in sorted_items(queue.acquired):
            yield queue.id, consumer, ACQUIRED, words
    for upload, words in sorted_items(state.uploads):
        yield upload, 0, _UPLOAD, words


class WordRuns:
    """The runs of words and times that have been read so far."""

    def __init__(self) -> None:
        self.lists: dict[tuple[int, int], PersistentQueue] = {}
        self.counts: Counter[int] = Counter()
        """The count of words so far, by queue."""
        self.acquired: dict[int, dict[int, PersistentQueue]] = {}
        self.keys: dict[int, list[tuple[int, bytes]]] = {}
        """Words and their keys, by queue."""
        self.dues: dict[int, PersistentColumn] = {}
        self.expiries: dict[int, PersistentColumn] = {}

    def list_of(self, queue: int, kind: int) -> PersistentQueue:
        """Return the words of a list of a queue."""
        return self.lists.get((queue, kind), EMPTY_QUEUE)

    def uploads(self) -> dict[int, PersistentQueue]:
        """Return the chunk records of messages that are arriving, by the first one."""
        return {one: words for (one, kind), words in self.lists.items() if kind == _UPLOAD}

    def take_words(self, payload: bytes) -> None:
        """Add the runs of a block. Raises ImageFault."""
        position = 0
        while position < len(payload):
            if len(payload) - position < _RUN.size:
                raise ImageFault(f"{len(payload) - position} extra bytes after the last run of words")
            queue, consumer, kind, count = _RUN.unpack_from(payload, position)
            position += _RUN.size
            end = position + count * WORD_BYTES
            if end > len(payload) or kind not in _LISTS:
                raise ImageFault(
                    f"a run of {count} words of list {kind}: found {len(payload) - position} bytes of words"
                )
            if kind == _KEYED:
                if count % _KEY_WORDS:
                    raise ImageFault(f"a run of {count} words of list {kind}: expected a multiple of {_KEY_WORDS}")
                self.keys.setdefault(queue, []).extend(_KEY_ROW.iter_unpack(payload[position:end]))
                position = end
                continue
            held = self.acquired.setdefault(queue, {}) if kind == ACQUIRED else self.lists
            key: Any = consumer if kind == ACQUIRED else (queue, kind)
            held[key] = held.get(key, EMPTY_QUEUE).push(payload[position:end])
            # The words of ids are not those of messages, which may have entries.
            self.counts[queue] += count if kind != IDS else 0
            position = end

    def take_dues(self, payload: bytes) -> None:
        """Add the times of scheduled messages of a block. Raises ImageFault."""
        _take_times(self.dues, payload)

    def take_expiries(self, payload: bytes) -> None:
        """Add the expiries of a block. Raises ImageFault."""
        _take_times(self.expiries, payload)


def _take_times(known: dict[int, PersistentColumn], payload: bytes) -> None:
    """Add the times of a block to those known of each queue. Raises ImageFault."""
    position = 0
    while position < len(payload):
        queue, count = _TIMES.unpack_from(payload, position) if len(payload) - position >= _TIMES.size else (0, 0)
        position += _TIMES.size
        middle, end = position + count * WORD_BYTES, position + 2 * count * WORD_BYTES
        keys = unpack_words(payload[position:middle])
        if not count or end > len(payload) or any(map(ge, keys, keys[1:])):
            raise ImageFault(f"a run of {count} times of queue {queue} is not whole and in order")
        times = known.get(queue, EMPTY_COLUMN)
        known[queue] = times.with_packed(payload[position:middle], payload[middle:end])
        position = end
