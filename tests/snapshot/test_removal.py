"""What a removal takes from a queue, and what it leaves shared."""

import pytest

from ambermq.snapshot.chunk_tree import chunks_of
from ambermq.snapshot.persistent_queue import EMPTY_QUEUE
from ambermq.snapshot.word_chunk import CHUNK_WORDS, WORD_BYTES, unpack_words
from tests.snapshot.words import FIVE_CHUNKS, packed, queue_of

REMOVALS = {
    "the head run": list(range(10)),
    "the head run across chunks": list(range(CHUNK_WORDS + 10)),
    "one word in the middle": [2 * CHUNK_WORDS + 5],
    "a run in one chunk": list(range(2 * CHUNK_WORDS + 5, 2 * CHUNK_WORDS + 50)),
    "a whole chunk": list(range(2 * CHUNK_WORDS, 3 * CHUNK_WORDS)),
    "a run across chunks": list(range(CHUNK_WORDS - 5, 3 * CHUNK_WORDS + 5)),
    "the head run but its first word": list(range(1, 10)),
    "a head run with a gap": [0, 1, 3],
    "the last word": [FIVE_CHUNKS - 1],
    "the tail": list(range(5 * CHUNK_WORDS, FIVE_CHUNKS)),
    "first and last": [FIVE_CHUNKS - 1, 0],
    "unordered across chunks": [4 * CHUNK_WORDS, 7, 2 * CHUNK_WORDS, 2 * CHUNK_WORDS - 1],
    "named twice": [CHUNK_WORDS, CHUNK_WORDS],
    "absent": [FIVE_CHUNKS, 2**64 - 1],
    "absent and present": [FIVE_CHUNKS, CHUNK_WORDS + 1],
    "all": list(range(FIVE_CHUNKS)),
    "all, unordered": list(range(FIVE_CHUNKS))[::-1],
    "nothing": [],
}


@pytest.mark.parametrize("popped", [0, 3, CHUNK_WORDS, 2 * CHUNK_WORDS + 3])
@pytest.mark.parametrize("wanted", REMOVALS.values(), ids=REMOVALS.keys())
def test_remove_takes_what_is_there_in_queue_order(wanted: list[int], popped: int) -> None:
    """Removal returns the words that the queue holds, in its order, and keeps the others in theirs."""
    queue = queue_of(range(FIVE_CHUNKS)).pop(popped)[1]
    held = range(popped, FIVE_CHUNKS)

    taken, rest = queue.remove(packed(wanted))

    assert sorted(set(wanted) & set(held)) == list(unpack_words(taken))
    assert sorted(set(held) - set(wanted)) == list(rest)
    assert len(held) - len(taken) // WORD_BYTES == len(rest)
    assert list(held) == list(queue)


def test_a_removal_of_nothing_is_the_same_queue() -> None:
    """Where no word is held, nothing is made."""
    queue = queue_of(range(FIVE_CHUNKS))

    assert queue is queue.remove(packed([FIVE_CHUNKS]))[1]


def test_bytes_of_a_word_across_two_others_are_not_that_word() -> None:
    """A word is found at its own place only."""
    first, second = packed([0x1111111122222222]), packed([0x3333333344444444])
    across = (first + second)[3:11]
    queue = EMPTY_QUEUE.push(packed([5]) + first + second)

    assert (b"", queue) == queue.remove(across)
    assert across == queue.push(across).remove(across)[0]


@pytest.mark.parametrize("popped", [0, CHUNK_WORDS])
@pytest.mark.parametrize("method", ["remove", "remove_ordered"])
def test_a_removal_shares_the_chunks_it_does_not_touch(popped: int, method: str) -> None:
    """A chunk that holds none of the words is the same object before and after."""
    queue = queue_of(range(FIVE_CHUNKS)).pop(popped)[1].push(packed(range(FIVE_CHUNKS, 2 * FIVE_CHUNKS)))
    word = 3 * CHUNK_WORDS + 7

    before = list(chunks_of(queue._tree))
    after = list(chunks_of(getattr(queue, method)(packed([word]))[1]._tree))

    untouched = {id(chunk) for chunk in before if word not in unpack_words(chunk)}
    assert len(before) - 1 == len(untouched)
    assert untouched <= {id(chunk) for chunk in after}


def test_a_removal_at_the_ends_shares_the_tree() -> None:
    """Where only the head and the tail hold the words, the tree is the same object before and after."""
    last = 2 * FIVE_CHUNKS - 1
    queue = queue_of(range(FIVE_CHUNKS)).pop(CHUNK_WORDS)[1].push(packed(range(FIVE_CHUNKS, last + 1)))

    rest = queue.remove(packed([CHUNK_WORDS + 1, last]))[1]

    assert queue._tree is rest._tree
    assert len(queue) - 2 == len(rest)
