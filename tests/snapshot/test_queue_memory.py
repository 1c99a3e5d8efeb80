"""The memory of a persistent queue: a bar of bytes a word, shared chunks, and no depth that meets the stack."""

import random
import sys
from itertools import pairwise
from typing import Any

import pytest

from ambermq.snapshot.chunk_tree import EMPTY_TREE, append, prepend
from ambermq.snapshot.compressed_chunk import CompressedChunk
from ambermq.snapshot.persistent_queue import EMPTY_QUEUE, PLAIN_WORDS_MAX, PersistentQueue
from ambermq.snapshot.word_chunk import CHUNK_WORDS, WORD_BYTES
from tests.snapshot.tree_walk import depths, leaf_nodes, objects_of
from tests.snapshot.words import packed, queue_of

BYTES_PER_WORD_MAX = 10


def size_bytes(queue: PersistentQueue) -> int:
    """Count every object that the queue alone keeps alive, with the collector's header of 16 bytes where it has one."""
    total = sys.getsizeof(queue) + sys.getsizeof(queue._head) + sys.getsizeof(queue._tail)
    return total + sum(map(object_bytes, objects_of(queue._tree)))


def object_bytes(one: Any) -> int:
    return sys.getsizeof(one)


def long_queue(words: list[int] | range) -> PersistentQueue:
    """Return a queue that has only compressed chunks beyond its first ones."""
    queue = queue_of(words)
    assert CompressedChunk in map(type, objects_of(queue._tree))
    return queue


def entry_words(offsets: range) -> list[int]:
    return [offset << 16 | 133 for offset in offsets]


def test_a_long_queue_takes_half_a_byte_a_word() -> None:
    """The chunks of a long queue are compressed, beyond a fixed number of words, and its short rest is plain."""
    words = entry_words(range(2_000_000))
    queue = long_queue(words)
    assert size_bytes(queue) <= 0.5 * len(queue) + 9 * PLAIN_WORDS_MAX

    rest = queue.pop(len(words) - 100)[1]

    assert list(rest) == words[-100:]
    assert CompressedChunk not in map(type, objects_of(rest))


def test_a_short_queue_is_plain() -> None:
    """No chunk is compressed in a queue up to the length, though it is filled and emptied again and again."""
    queue = EMPTY_QUEUE
    for start in range(0, 8 * PLAIN_WORDS_MAX, CHUNK_WORDS):
        queue = queue.push(packed(entry_words(range(start, start + CHUNK_WORDS))))
        if len(queue) == PLAIN_WORDS_MAX:
            queue = queue.pop(PLAIN_WORDS_MAX - 100)[1]
        assert CompressedChunk not in map(type, objects_of(queue))


@pytest.mark.parametrize("step", [2, 50, 1000])
def test_a_long_queue_stays_small_after_removals_and_insertions(step: int) -> None:
    """Words that leave the middle, from each chunk or from few, and come back, leave at most 8 plain chunks a node."""
    words = entry_words(range(40 * PLAIN_WORDS_MAX))
    queue, start = long_queue(words), 32 * CHUNK_WORDS * 2

    taken, rest = queue.remove_ordered(packed(words[start::step]))
    again = rest.insert_ordered(words[start::step])

    assert taken == packed(words[start::step])
    assert again == queue
    for one in (rest, again):
        plain = [sum(type(chunk) is bytes for chunk in node) for node in leaf_nodes(one._tree)]
        assert sum(plain) <= 0.5 * sum(map(len, leaf_nodes(one._tree)))
        assert size_bytes(one) <= 5 * len(one)


def test_versions_of_a_long_queue_share_their_chunks() -> None:
    """A removal from one chunk makes one other chunk: the others are the same objects."""
    words = entry_words(range(4 * PLAIN_WORDS_MAX))
    queue = long_queue(words)

    rest = queue.remove_ordered(packed([words[-5 * CHUNK_WORDS]]))[1]

    before = {id(one) for one in objects_of(queue._tree) if type(one) is not tuple}
    after = {id(one) for one in objects_of(rest._tree) if type(one) is not tuple}
    assert len(after - before) == 1


@pytest.mark.parametrize("run", [1, 700, 1_000_000])
def test_a_million_words_take_at_most_ten_bytes_each(run: int) -> None:
    """The memory bar holds however the words were pushed."""
    queue = queue_of(range(1_000_000), run)

    assert size_bytes(queue) <= BYTES_PER_WORD_MAX * len(queue)


def test_the_memory_bar_holds_after_random_removals() -> None:
    """However many of a million words random removals have left, they take at most ten bytes each."""
    words = list(range(1_000_000))
    queue = queue_of(words)
    random.Random(7).shuffle(words)

    for start, end in pairwise([0, 100_000, 500_000, 900_000, 970_000]):
        queue = queue.remove(packed(words[start:end]))[1]
        assert len(words) - end == len(queue)
        assert size_bytes(queue) <= BYTES_PER_WORD_MAX * len(queue)


def test_the_memory_bar_holds_when_short_rests_are_given_large_runs_back() -> None:
    """Popping all but a few words and giving a large run back, again and again, leaves no small chunks behind."""
    queue = EMPTY_QUEUE
    for start in range(0, 300 * CHUNK_WORDS, CHUNK_WORDS):
        queue = queue.push_front(packed(range(start, start + CHUNK_WORDS - 1)))
        queue = queue.pop(CHUNK_WORDS - 100)[1]

    assert size_bytes(queue) <= BYTES_PER_WORD_MAX * len(queue)


def test_length_does_not_meet_the_stack() -> None:
    """Five million words are pushed, reversed, sifted, compared and freed without recursion."""
    count = 5_000_000
    words = bytes(packed(range(count)))
    queue = EMPTY_QUEUE.push(words)

    taken, rest = queue.pop(2 * CHUNK_WORDS)
    removed, without = rest.remove(words[-WORD_BYTES:])

    assert words[: len(taken)] == taken
    assert words[-WORD_BYTES:] == removed
    assert words == without.push(removed).push_front(taken).to_bytes()


def test_a_tree_of_short_chunks_does_not_meet_the_stack() -> None:
    """A tree of a hundred thousand chunks is 4 levels deep, from either end, and is popped to its end."""
    chunks = [packed([word]) for word in range(100_000)]
    for grow, order in ((append, chunks), (prepend, chunks[::-1])):
        tree = EMPTY_TREE
        for chunk in order:
            tree = grow(tree, chunk)
        assert depths(tree) == {4}
        queue = PersistentQueue(packed([0]), 0, tree, b"", 1 + len(chunks))
        taken, rest = queue.pop(2 + len(chunks))
        assert b"".join([packed([0]), *chunks]) == taken
        assert rest is EMPTY_QUEUE
