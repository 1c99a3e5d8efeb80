"""A persistent queue of u64 words: every operation returns a new version and leaves the old one unchanged.

    head[start:]  front list of chunks  |  back list of chunks, last one first  tail
    <- pop, push_front                                                       push ->

Rule 1. Arguments and results are runs of words: `bytes` of packed little-endian u64, one or many. A word is never an
        object of its own.
Rule 2. Versions share chunks. Only the head and the tail, at most one chunk each, are copied to grow. A pop moves
        `start` and copies only the words that it returns; in a queue that is all tail it copies the rest too.
Rule 3. A chunk is sealed when it is full. Only a removal makes a chunk smaller, and then no two neighbours in a list
        fit into one chunk. So chunks are more than half full on average: at most 9 bytes a word in a long queue, after
        any removals.
Rule 4. If a list has chunks, the head has words. Only a queue that is all tail, such as a short one, has an empty head.
Rule 5. When the front list is empty, the back list is reversed, chunk by chunk: 0.05 us for 1,024 words.
Rule 6. No function recurses, so only memory limits the length.
"""

from collections.abc import Iterator
from typing import final

from msgspec import Struct
from msgspec.structs import replace

from ambermq.snapshot.removal import Removal
from ambermq.snapshot.word_chunk import CHUNK_BYTES, WORD_BYTES, Chunk, Link, link_all, reverse, unpack_words

__all__ = ["EMPTY_QUEUE", "PersistentQueue"]


@final
class PersistentQueue(Struct, frozen=True, eq=False):
    """An immutable queue of unique u64 words. `PersistentQueue.empty()` is the empty one.

    Two queues are equal if their words are equal, whatever their chunks are. A queue is not hashable, because a hash
    would read every word.
    """

    # A Struct is made in C. A constructor in Python would double the cost of pushing a single word.
    _head: bytes
    _start: int
    _front: Link
    _back: Link
    _tail: bytes
    count: int
    """The number of words."""

    @staticmethod
    def empty() -> "PersistentQueue":
        """Return the empty queue."""
        return EMPTY_QUEUE

    def __len__(self) -> int:
        return self.count

    def __bool__(self) -> bool:
        return self.count > 0

    def __iter__(self) -> Iterator[int]:
        for words in self.chunks():
            yield from unpack_words(words)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PersistentQueue):
            return NotImplemented
        return self is other or (self.count == other.count and self.to_bytes() == other.to_bytes())

    def __ne__(self, other: object) -> bool:
        # The base class compares by identity.
        return not self == other

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"PersistentQueue(count={self.count})"

    def chunks(self) -> Iterator[bytes]:
        """Yield all words in order, in packed runs of 1 to `CHUNK_WORDS`. Chunks in the lists are not copied."""
        if self._start < len(self._head):
            yield self._head[self._start :]
        yield from _words_of(self._front)
        yield from _words_of(reverse(self._back))
        if self._tail:
            yield self._tail

    def chunks_backward(self) -> Iterator[bytes]:
        """Yield the runs of `chunks` from the last to the first."""
        if self._tail:
            yield self._tail
        yield from _words_of(self._back)
        yield from _words_of(reverse(self._front))
        if self._start < len(self._head):
            yield self._head[self._start :]

    def to_bytes(self) -> bytes:
        """Return all words in order, packed."""
        return b"".join(self.chunks())

    def push(self, words: bytes) -> "PersistentQueue":
        """Return this queue with packed `words` appended."""
        assert not len(words) % WORD_BYTES, f"{len(words)} bytes are not a multiple of {WORD_BYTES}"
        count = self.count + len(words) // WORD_BYTES
        tail = self._tail + words
        if len(tail) <= CHUNK_BYTES:
            return replace(self, _tail=tail, count=count)
        return self._push_and_seal(tail, count)

    def _push_and_seal(self, tail: bytes, count: int) -> "PersistentQueue":
        """Return this queue with `tail`, which is longer than a chunk, cut into chunks; the rest stays the tail."""
        back = self._back
        position = 0
        while len(tail) - position > CHUNK_BYTES:
            back = (Chunk(tail[position : position + CHUNK_BYTES]), back)
            position += CHUNK_BYTES
        return _with_head(self._head, self._start, self._front, back, tail[position:], count)

    def push_front(self, words: bytes) -> "PersistentQueue":
        """Return this queue with packed `words` prepended in their order: `words[:8]` is the new first word."""
        assert len(words) % WORD_BYTES == 0, f"{len(words)} bytes are not a multiple of {WORD_BYTES}"
        count = self.count + len(words) // WORD_BYTES
        head = words + self._head[self._start :]
        front = self._front
        # Cut from the end, so that sealed chunks are full and the rest is the head.
        end = len(head)
        while end > CHUNK_BYTES:
            front = (Chunk(head[end - CHUNK_BYTES : end]), front)
            end -= CHUNK_BYTES
        return PersistentQueue(head[:end], 0, front, self._back, self._tail, count)

    def head(self, count: int) -> bytes:
        """Return the first `count` words, packed; fewer if the queue has fewer."""
        assert count >= 0, f"cannot return {count} words"
        if not self._head:
            return self._tail[: count * WORD_BYTES]
        end = self._start + count * WORD_BYTES
        if end <= len(self._head):
            return self._head[self._start : end]
        return self._pop_across(count)[0]

    def last(self) -> bytes:
        """Return the last word, packed; no bytes if the queue is empty."""
        if self._tail:
            return self._tail[-WORD_BYTES:]
        if self._back is not None:
            return self._back[0].words[-WORD_BYTES:]
        link, words = self._front, self._head[self._start :]
        while link is not None:
            chunk, link = link
            words = chunk.words
        return words[-WORD_BYTES:]

    def pop(self, count: int) -> tuple[bytes, "PersistentQueue"]:
        """Return the first `count` words, packed, and the queue without them; fewer if the queue has fewer."""
        assert count >= 0, f"cannot pop {count} words"
        head, start, tail = self._head, self._start, self._tail
        end = start + count * WORD_BYTES
        if end < len(head):
            return head[start:end], replace(self, _start=end, count=self.count - count)
        if head:
            return self._pop_across(count)
        if count >= self.count:
            return tail, EMPTY_QUEUE
        return tail[:end], replace(self, _tail=tail[end:], count=self.count - count)

    def _pop_across(self, count: int) -> tuple[bytes, "PersistentQueue"]:
        """Return the result of `pop` for a run of words that spans the head and later chunks."""
        head, start, front, back, tail = self._head, self._start, self._front, self._back, self._tail
        missing = count * WORD_BYTES
        pieces: list[bytes] = []
        while missing >= len(head) - start:
            pieces.append(head[start:])
            missing -= len(head) - start
            start = 0
            if front is None:
                front, back = reverse(back), None
            if front is not None:
                chunk, front = front
                head = chunk.words
            elif tail:
                head, tail = tail, b""
            else:
                return b"".join(pieces), EMPTY_QUEUE
        pieces.append(head[start : start + missing])
        words = b"".join(pieces)
        rest = self.count - len(words) // WORD_BYTES
        return words, PersistentQueue(head, start + missing, front, back, tail, rest)

    def remove(self, words: bytes) -> tuple[bytes, "PersistentQueue"]:
        """Return those of packed `words` that are in the queue, in its order, and the queue without them.

        `words` may have any order and may contain words that are not in the queue. A run at the head is popped.
        Otherwise each chunk costs one comparison, and a chunk with some of the words is rewritten.
        """
        if words == self._tail and not self._head:
            # The whole of a short queue: the frequent case in which each message leaves before the next one arrives.
            return words, EMPTY_QUEUE
        assert len(words) % WORD_BYTES == 0, f"{len(words)} bytes are not a multiple of {WORD_BYTES}"
        if self.starts_with(words):
            return self.pop(len(words) // WORD_BYTES)
        removal = Removal(words)
        head = removal.remove(self._head[self._start :])
        front, back = self._remove_from_lists(removal)
        tail = removal.remove(self._tail)
        removed = removal.removed()
        if not removed:
            return removed, self
        return removed, _with_head(head, 0, front, back, tail, self.count - len(removed) // WORD_BYTES)

    def starts_with(self, words: bytes) -> bool:
        """Return whether the queue begins with packed `words`."""
        if not self._head:
            return self._tail.startswith(words)
        if self._head.startswith(words, self._start):
            return True
        # Across chunks: if the first word differs, no other is compared.
        return self.head(1) == words[:WORD_BYTES] and self.head(len(words) // WORD_BYTES) == words

    def _remove_from_lists(self, removal: Removal) -> tuple[Link, Link]:
        """Return the front and back lists without the words of `removal`; the part after the last match is shared."""
        front = _remove_from_list(self._front, removal)
        if not removal.missing or self._back is None:
            return front, self._back
        back = reverse(self._back)
        remainder = _remove_from_list(back, removal)
        return (front, self._back) if remainder is back else (front, reverse(remainder))


def _words_of(link: Link) -> Iterator[bytes]:
    """Yield the words of each chunk of a list."""
    while link is not None:
        chunk, link = link
        yield chunk.words


def _remove_from_list(link: Link, removal: Removal) -> Link:
    """Return the list without the words of `removal`; the same list if it has none of them."""
    kept: list[Chunk] = []
    rest = link
    has_changed = False
    # After the last match one more chunk may join the rest of the previous one, by rule 3 of this module.
    while rest is not None and (removal.missing or (kept and kept[-1].fits(rest[0]))):
        chunk, rest = rest
        remainder = removal.remove_from_chunk(chunk)
        has_changed = has_changed or remainder is not chunk
        if remainder is not None:
            _append(kept, remainder)
    return link_all(kept, rest) if has_changed else link


def _append(chunks: list[Chunk], chunk: Chunk) -> None:
    """Append `chunk`, joined to the last one if both fit into one. Unchanged neighbours never fit."""
    if chunks and chunks[-1].fits(chunk):
        chunks[-1] = chunks[-1].join(chunk)
    else:
        chunks.append(chunk)


def _with_head(head: bytes, start: int, front: Link, back: Link, tail: bytes, count: int) -> PersistentQueue:
    """Return a queue of these parts; if the head is empty and a list has a chunk, that chunk becomes the head."""
    if start == len(head):
        if front is None:
            front, back = reverse(back), None
        if front is not None:
            chunk, front = front
            head, start = chunk.words, 0
    return PersistentQueue(head, start, front, back, tail, count)


EMPTY_QUEUE = PersistentQueue(b"", 0, None, None, b"", 0)
