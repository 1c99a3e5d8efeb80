"""A persistent queue of u64 words: every operation returns another version and leaves the old one as it was.

    head[start:]  front list of chunks  |  back list of chunks, last one first  tail
    <- pop, push_front                                                       push ->

Rule 1. Words come and go as runs: `bytes` of packed little-endian u64, one or many. A word is never an object.
Rule 2. Chunks are shared between versions. Only the head and the tail, at most a chunk each, are copied to grow;
        popping moves `start` and copies nothing but what it returns, and what is left where all is tail.
Rule 3. A chunk is sealed full. Only a removal leaves less, and then no two neighbours in a list fit in one chunk, so
        chunks are more than half full on the average: at most 9 bytes a word in a long queue, whatever was removed.
Rule 4. While a list holds chunks, the head holds words; only a queue that is all tail, as a short one is, has none.
Rule 5. When the front list is used up, the back list is reversed, chunk by chunk: 0.05 us for 1,024 words.
Rule 6. Nothing recurses, so length is bounded by memory alone.
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
    """An immutable queue of unique u64 words; begin with `PersistentQueue.empty()`.

    Equal by content: how the words lie in chunks does not matter. Not hashable, as that would read every word.
    """

    # One version each, made in C: a constructor in Python would double the price of pushing a single word.
    _head: bytes
    _start: int
    _front: Link
    _back: Link
    _tail: bytes
    count: int
    """Words that it holds."""

    @staticmethod
    def empty() -> "PersistentQueue":
        """Return the queue that holds nothing."""
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
        # The base would answer by identity.
        return not self == other

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"PersistentQueue(count={self.count})"

    def chunks(self) -> Iterator[bytes]:
        """Yield all words in order, in packed runs of 1 to `CHUNK_WORDS`; those of the lists are not copied."""
        if self._start < len(self._head):
            yield self._head[self._start :]
        yield from _words_of(self._front)
        yield from _words_of(reverse(self._back))
        if self._tail:
            yield self._tail

    def chunks_backward(self) -> Iterator[bytes]:
        """Yield the same runs from the last one to the first."""
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
        """Return this queue with packed `words` after its last one."""
        assert not len(words) % WORD_BYTES, f"{len(words)} bytes are no run of words"
        count = self.count + len(words) // WORD_BYTES
        tail = self._tail + words
        if len(tail) <= CHUNK_BYTES:
            return replace(self, _tail=tail, count=count)
        return self._push_sealing(tail, count)

    def _push_sealing(self, tail: bytes, count: int) -> "PersistentQueue":
        """Return this queue with `tail`, longer than a chunk, cut; what is left over stays the tail."""
        back = self._back
        position = 0
        while len(tail) - position > CHUNK_BYTES:
            back = (Chunk(tail[position : position + CHUNK_BYTES]), back)
            position += CHUNK_BYTES
        return _fronted(self._head, self._start, self._front, back, tail[position:], count)

    def push_front(self, words: bytes) -> "PersistentQueue":
        """Return this queue with packed `words` before its first one, in their order: `words[:8]` is the new head."""
        assert len(words) % WORD_BYTES == 0, f"{len(words)} bytes are no run of words"
        count = self.count + len(words) // WORD_BYTES
        head = words + self._head[self._start :]
        front = self._front
        # Cut from the end, so that sealed chunks are full and the part that is left over is the head.
        end = len(head)
        while end > CHUNK_BYTES:
            front = (Chunk(head[end - CHUNK_BYTES : end]), front)
            end -= CHUNK_BYTES
        return PersistentQueue(head[:end], 0, front, self._back, self._tail, count)

    def head(self, count: int) -> bytes:
        """Return the first `count` words, packed; fewer when the queue holds fewer."""
        assert count >= 0, f"cannot look at {count} words"
        if not self._head:
            return self._tail[: count * WORD_BYTES]
        end = self._start + count * WORD_BYTES
        if end <= len(self._head):
            return self._head[self._start : end]
        return self._pop_across(count)[0]

    def last(self) -> bytes:
        """Return the last word, packed; nothing when the queue holds none."""
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
        """Return the first `count` words, packed, and the queue without them; fewer when it holds fewer."""
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
        """Pop from the head and as many chunks behind it as `count` reaches."""
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
        """Return those of packed `words` that the queue holds, in its order, and the queue without them.

        `words` may come in any order and may name words that are not here. A run at the head is popped. Else each
        chunk costs a comparison, and a chunk that holds some of them is rewritten.
        """
        if words == self._tail and not self._head:
            # All of a short queue, as where each word goes before the next one comes.
            return words, EMPTY_QUEUE
        assert len(words) % WORD_BYTES == 0, f"{len(words)} bytes are no run of words"
        if self.starts_with(words):
            return self.pop(len(words) // WORD_BYTES)
        removal = Removal(words)
        head = removal.sift(self._head[self._start :])
        front, back = self._sift_lists(removal)
        tail = removal.sift(self._tail)
        taken = removal.taken()
        if not taken:
            return taken, self
        return taken, _fronted(head, 0, front, back, tail, self.count - len(taken) // WORD_BYTES)

    def starts_with(self, words: bytes) -> bool:
        """Whether the queue begins with packed `words`."""
        if not self._head:
            return self._tail.startswith(words)
        if self._head.startswith(words, self._start):
            return True
        # Across chunks: when the first word differs, no other is looked at.
        return self.head(1) == words[:WORD_BYTES] and self.head(len(words) // WORD_BYTES) == words

    def _sift_lists(self, removal: Removal) -> tuple[Link, Link]:
        """Return the front and back lists without the words of `removal`, sharing all behind the last one found."""
        front = _sift_list(self._front, removal)
        if not removal.missing or self._back is None:
            return front, self._back
        back = reverse(self._back)
        sifted = _sift_list(back, removal)
        return (front, self._back) if sifted is back else (front, reverse(sifted))


def _words_of(link: Link) -> Iterator[bytes]:
    """Yield the words of each chunk of a list."""
    while link is not None:
        chunk, link = link
        yield chunk.words


def _sift_list(link: Link, removal: Removal) -> Link:
    """Return the list without the words of `removal`; the same list when it holds none of them."""
    kept: list[Chunk] = []
    rest = link
    touched = False
    # Beyond the last word found, one more chunk may join what is left of the one before: rule 3 of this file.
    while rest is not None and (removal.missing or (kept and kept[-1].fits(rest[0]))):
        chunk, rest = rest
        sifted = removal.sift_chunk(chunk)
        touched = touched or sifted is not chunk
        if sifted is not None:
            _append(kept, sifted)
    return link_all(kept, rest) if touched else link


def _append(chunks: list[Chunk], chunk: Chunk) -> None:
    """Append `chunk`, joined to the last one when both fit in one: neighbours that nothing was taken from do not."""
    if chunks and chunks[-1].fits(chunk):
        chunks[-1] = chunks[-1].join(chunk)
    else:
        chunks.append(chunk)


def _fronted(head: bytes, start: int, front: Link, back: Link, tail: bytes, count: int) -> PersistentQueue:
    """Return a queue of these parts, with a chunk moved up from the lists when they have one and the head is empty."""
    if start == len(head):
        if front is None:
            front, back = reverse(back), None
        if front is not None:
            chunk, front = front
            head, start = chunk.words, 0
    return PersistentQueue(head, start, front, back, tail, count)


EMPTY_QUEUE = PersistentQueue(b"", 0, None, None, b"", 0)
