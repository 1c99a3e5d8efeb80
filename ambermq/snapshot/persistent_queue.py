"""A persistent queue of u64 words: every operation returns a new version and leaves the old one unchanged.

    head[start:]  tree of chunks  tail
    <- pop, push_front         push ->

Rule 1. Arguments and results are runs of words: `bytes` of packed little-endian u64, one or many. A word is never an
        object of its own.
Rule 2. Versions share chunks. Only the head and the tail, at most one chunk each, are copied to grow. A pop moves
        `start` and copies only the words that it returns; in a queue that is all tail it copies the rest too.
Rule 3. A chunk is sealed when it is full. Only a removal makes a chunk smaller, and joins it to a neighbour if both fit
        into one (chunk_tree.py). So a long queue takes at most 9 bytes a word, after any removals.
Rule 4. In a queue with more than `PLAIN_WORDS_MAX` words, a chunk is compressed when it is sealed
        (compressed_chunk.py), and plain again when it becomes the head. So the cold middle of a long queue takes a
        third of a byte to three bytes a word, and a short queue pays nothing.
Rule 5. If the tree has chunks, the head has words. Only a queue that is all tail, such as a short one, has an empty
        head.
Rule 6. In an ordered queue the words rise. The methods with `ordered` or `above` in their names are for such queues:
        they cost O(log n). `remove` reads an unordered queue to the end.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from typing import final

from msgspec import Struct
from msgspec.structs import replace

from ambermq.snapshot.chunk_tree import (
    EMPTY_TREE,
    Node,
    append,
    chunk_above,
    chunks_of,
    first_word,
    insert_ordered,
    last_word,
    merged,
    pop_first,
    prepend,
    remove_anywhere,
    remove_ordered,
)
from ambermq.snapshot.compressed_chunk import compressed
from ambermq.snapshot.removal import Removal
from ambermq.snapshot.word_chunk import CHUNK_BYTES, CHUNK_WORDS, WORD_BYTES, unpack_words

__all__ = ["EMPTY_QUEUE", "PersistentQueue"]

PLAIN_WORDS_MAX = 32 * CHUNK_WORDS
"""The words of a queue up to which its chunks stay plain. A queue that its consumers keep up with has fewer."""


@final
class PersistentQueue(Struct, frozen=True, eq=False):
    """An immutable queue of unique u64 words. `PersistentQueue.empty()` is the empty one.

    Two queues are equal if their words are equal, whatever their chunks are. A queue is not hashable, because a hash
    would read every word.
    """

    # A Struct is made in C. A constructor in Python would double the cost of pushing a single word.
    _head: bytes
    _start: int
    _tree: Node
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
        """Yield all words in order, in packed runs of 1 to `CHUNK_WORDS`. Plain chunks are not copied."""
        if self._start < len(self._head):
            yield self._head[self._start :]
        yield from chunks_of(self._tree)
        if self._tail:
            yield self._tail

    def chunks_backward(self) -> Iterator[bytes]:
        """Yield the runs of `chunks` from the last to the first."""
        if self._tail:
            yield self._tail
        yield from chunks_of(self._tree, backward=True)
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
        tree = self._tree
        position = 0
        while len(tail) - position > CHUNK_BYTES:
            tree = append(tree, _sealed(tail[position : position + CHUNK_BYTES], count))
            position += CHUNK_BYTES
        return _with_head(self._head, self._start, tree, tail[position:], count)

    def push_front(self, words: bytes) -> "PersistentQueue":
        """Return this queue with packed `words` prepended in their order: `words[:8]` is the new first word."""
        assert len(words) % WORD_BYTES == 0, f"{len(words)} bytes are not a multiple of {WORD_BYTES}"
        count = self.count + len(words) // WORD_BYTES
        head = words + self._head[self._start :]
        tree = self._tree
        # Cut from the end, so that sealed chunks are full and the rest is the head.
        end = len(head)
        while end > CHUNK_BYTES:
            tree = prepend(tree, _sealed(head[end - CHUNK_BYTES : end], count))
            end -= CHUNK_BYTES
        return PersistentQueue(head[:end], 0, tree, self._tail, count)

    def insert_ordered(self, words: list[int]) -> "PersistentQueue":
        """Return an ordered queue with rising `words` inserted where they belong, in O(log n) for each chunk."""
        tail_start = (
            int.from_bytes(self._tail[:WORD_BYTES], "little")
            if self._tail
            else int.from_bytes(self.last(), "little") + 1
        )
        tree_start = first_word(self._tree) if self._tree else tail_start
        low, high = bisect_left(words, tree_start), bisect_left(words, tail_start)
        tree = insert_ordered(self._tree, words[low:high]) if low < high else self._tree
        count = self.count - len(self._tail) // WORD_BYTES + high - low
        queue = PersistentQueue(self._head, self._start, tree, b"", count)
        if low:
            head = self._head[self._start :]
            queue = replace(queue, _head=b"", _start=0, count=count - len(head) // WORD_BYTES)
            queue = queue.push_front(merged(head, words[:low]))
        return queue.push(merged(self._tail, words[high:]))

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
        return (
            last_word(self._tree).to_bytes(WORD_BYTES, "little")
            if self._tree
            else self._head[self._start :][-WORD_BYTES:]
        )

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
        head, start, tree, tail = self._head, self._start, self._tree, self._tail
        missing = count * WORD_BYTES
        pieces: list[bytes] = []
        while missing >= len(head) - start:
            pieces.append(head[start:])
            missing -= len(head) - start
            start = 0
            if tree:
                head, tree = pop_first(tree)
            elif tail:
                head, tail = tail, b""
            else:
                return b"".join(pieces), EMPTY_QUEUE
        pieces.append(head[start : start + missing])
        words = b"".join(pieces)
        rest = self.count - len(words) // WORD_BYTES
        return words, PersistentQueue(head, start + missing, tree, tail, rest)

    def remove(self, words: bytes) -> tuple[bytes, "PersistentQueue"]:
        """Return those of packed `words` that are in the queue, in its order, and the queue without them.

        `words` may have any order and may contain words that are not in the queue. A run at the head is popped.
        Otherwise a word is searched where an ordered queue has it, then in each chunk.
        """
        if words == self._tail and not self._head:
            # The whole of a short queue: the frequent case in which each message leaves before the next one arrives.
            return words, EMPTY_QUEUE
        assert len(words) % WORD_BYTES == 0, f"{len(words)} bytes are not a multiple of {WORD_BYTES}"
        if self.starts_with(words):
            return self.pop(len(words) // WORD_BYTES)
        if self._tree and len(words) == WORD_BYTES:
            removed, rest = self._without_ordered(Removal(words))
            if removed:
                return removed, rest
        # Most chunks of an unordered queue are ordered in themselves, so the ends of a chunk mostly say what it has.
        likely = Removal(words)
        rest = self._without(likely, likely.remove_between)
        if not likely.missing:
            return likely.removed(), rest
        removal = Removal(words)
        rest = self._without(removal, removal.remove_any)
        return removal.removed(), rest

    def _without(self, removal: Removal, remove: Callable[[bytes], bytes]) -> "PersistentQueue":
        """Return the queue without the words that `remove` removes from each of its runs, in their order."""
        missing = removal.missing
        head = remove(self._head[self._start :])
        tree = remove_anywhere(self._tree, removal, remove)
        tail = remove(self._tail)
        if removal.missing == missing:
            return self
        return _with_head(head, 0, tree, tail, self.count - missing + removal.missing)

    def remove_ordered(self, words: bytes) -> tuple[bytes, "PersistentQueue"]:
        """Return the same as `remove` for an ordered queue, in O(log n) for each chunk that has some of the words."""
        if words == self._tail and not self._head:
            return words, EMPTY_QUEUE
        assert len(words) % WORD_BYTES == 0, f"{len(words)} bytes are not a multiple of {WORD_BYTES}"
        if self.starts_with(words):
            return self.pop(len(words) // WORD_BYTES)
        return self._without_ordered(Removal(words))

    def _without_ordered(self, removal: Removal) -> tuple[bytes, "PersistentQueue"]:
        """Return the result of `remove`, with each word searched only where an ordered queue has it."""
        missing = removal.missing
        head = removal.remove_between(self._head[self._start :])
        tree = remove_ordered(self._tree, removal)
        tail = removal.remove_between(self._tail)
        if removal.missing == missing:
            return b"", self
        return removal.removed(), _with_head(head, 0, tree, tail, self.count - missing + removal.missing)

    def run_above(self, word: int) -> bytes:
        """Return the words above `word` in the first chunk of an ordered queue that has any; no bytes at the end."""
        chunk = self._chunk_above(word)
        if not chunk or first_word(chunk) > word:
            return chunk
        return chunk[bisect_right(memoryview(chunk).cast("Q"), word) * WORD_BYTES :]

    def _chunk_above(self, word: int) -> bytes:
        head = self._head[self._start :]
        if head and int.from_bytes(head[-WORD_BYTES:], "little") > word:
            return head
        return chunk_above(self._tree, word) or (
            self._tail if self._tail and int.from_bytes(self._tail[-WORD_BYTES:], "little") > word else b""
        )

    def holds(self, word: int) -> bool:
        """Return whether an ordered queue has a word."""
        return self.run_above(word - 1).startswith(word.to_bytes(WORD_BYTES, "little"))

    def starts_with(self, words: bytes) -> bool:
        """Return whether the queue begins with packed `words`."""
        if not self._head:
            return self._tail.startswith(words)
        if self._head.startswith(words, self._start):
            return True
        # Across chunks: if the first word differs, no other is compared.
        return self.head(1) == words[:WORD_BYTES] and self.head(len(words) // WORD_BYTES) == words


def _sealed(chunk: bytes, count: int) -> bytes:
    """Return a full chunk as a queue of `count` words keeps it in its tree."""
    return compressed(chunk) if count > PLAIN_WORDS_MAX else chunk


def _with_head(head: bytes, start: int, tree: Node, tail: bytes, count: int) -> PersistentQueue:
    """Return a queue of these parts; if the head is empty and the tree has a chunk, that chunk becomes the head."""
    if tree and start == len(head):
        head, tree = pop_first(tree)
        start = 0
    return PersistentQueue(head, start, tree, tail, count)


EMPTY_QUEUE = PersistentQueue(b"", 0, EMPTY_TREE, b"", 0)
