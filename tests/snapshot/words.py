"""Runs of words, queues made of them, and the chunks that a queue is made of."""

from struct import pack

from ambermq.snapshot.persistent_queue import PersistentQueue
from ambermq.snapshot.word_chunk import CHUNK_WORDS

__all__ = ["FIVE_CHUNKS", "packed", "queue_of"]

# Five full chunks and a short tail.
FIVE_CHUNKS = 5 * CHUNK_WORDS + 100


def packed(words: list[int] | range) -> bytes:
    return pack(f"<{len(words)}Q", *words)


def queue_of(words: list[int] | range, run: int = CHUNK_WORDS) -> PersistentQueue:
    queue = PersistentQueue.empty()
    for start in range(0, len(words), run):
        queue = queue.push(packed(words[start : start + run]))
    return queue
