"""A persistent queue against a deque, with every version kept and looked at again at the end."""

import random
import sys
from collections import deque
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from ambermq.snapshot import persistent_queue
from ambermq.snapshot.chunk_tree import EMPTY_TREE, FANOUT, append, prepend
from ambermq.snapshot.compressed_chunk import CompressedChunk, count_of
from ambermq.snapshot.persistent_queue import EMPTY_QUEUE, PersistentQueue
from ambermq.snapshot.word_chunk import CHUNK_WORDS, WORD_BYTES, unpack_words
from tests.snapshot.words import FIVE_CHUNKS, packed, queue_of

PLAIN_WORDS_MAX = persistent_queue.PLAIN_WORDS_MAX
BYTES_PER_WORD_MAX = 10
LENGTHS = st.one_of(
    st.integers(1, 9),
    st.sampled_from([CHUNK_WORDS // 2, CHUNK_WORDS - 1, CHUNK_WORDS, CHUNK_WORDS + 1, 3 * CHUNK_WORDS]),
)


def size_bytes(queue: PersistentQueue) -> int:
    """Count every object that the queue alone keeps alive, with the collector's header of 16 bytes where it has one."""
    total = sys.getsizeof(queue) + sys.getsizeof(queue._head) + sys.getsizeof(queue._tail)
    return total + sum(map(object_bytes, objects_of(queue._tree)))


def objects_of(node: Any) -> Iterator[Any]:
    """Yield a node, and all nodes and chunks below it."""
    yield node
    if type(node) is tuple:
        for child in node:
            yield from objects_of(child)


def leaf_nodes(node: Any) -> Iterator[Any]:
    """Yield the nodes of chunks."""
    for one in objects_of(node):
        if type(one) is tuple and one and type(one[0]) is not tuple:
            yield one


def depths(node: Any, depth: int = 0) -> set[int]:
    """Return how deep the chunks below a node are."""
    if type(node) is not tuple:
        return {depth}
    return set().union(*[depths(child, depth + 1) for child in node])


def object_bytes(one: Any) -> int:
    return sys.getsizeof(one)


class QueueMachine(RuleBasedStateMachine):
    """The queue does what a deque does, and no version of it changes afterwards."""

    def __init__(self) -> None:
        super().__init__()
        self.queue = EMPTY_QUEUE
        self.model: deque[int] = deque()
        self.versions: list[tuple[PersistentQueue, list[int]]] = []
        self.next_word = 0
        self.scattered = False

    @initialize(scattered=st.booleans(), plain_words_max=st.sampled_from([0, 2 * CHUNK_WORDS, 1 << 30]))
    def choose_words(self, *, scattered: bool, plain_words_max: int) -> None:
        self.scattered = scattered
        persistent_queue.PLAIN_WORDS_MAX = plain_words_max

    def draw_run(self, length: int) -> list[int]:
        """Return words never used before: rising as offsets do, or spread over all of u64 by an odd multiplier."""
        run = range(self.next_word, self.next_word + length)
        self.next_word += length
        return [word * 0x9E3779B97F4A7C15 % 2**64 if self.scattered else word << 16 | 0xABCD for word in run]

    def become(self, queue: PersistentQueue) -> None:
        self.versions.append((self.queue, list(self.model)))
        self.queue = queue

    @rule(length=LENGTHS)
    def push(self, length: int) -> None:
        run = self.draw_run(length)
        self.become(self.queue.push(packed(run)))
        self.model.extend(run)

    @rule(length=LENGTHS)
    def push_front(self, length: int) -> None:
        run = self.draw_run(length)
        self.become(self.queue.push_front(packed(run)))
        self.model.extendleft(reversed(run))

    @rule(count=st.one_of(st.just(0), LENGTHS))
    def pop(self, count: int) -> None:
        taken, queue = self.queue.pop(count)
        self.become(queue)
        expected = [self.model.popleft() for _ in range(min(count, len(self.model)))]
        assert expected == list(unpack_words(taken))

    @rule(count=st.one_of(st.just(0), LENGTHS))
    def head(self, count: int) -> None:
        assert list(self.model)[:count] == list(unpack_words(self.queue.head(count)))

    @rule(draw=st.data(), length=LENGTHS)
    def remove_run(self, draw: st.DataObject, length: int) -> None:
        start = draw.draw(st.integers(0, len(self.model)), label="start")
        self.remove(list(self.model)[start : start + length])

    @rule(seed=st.integers(0, 2**32), share=st.sampled_from([0.001, 0.01, 0.5, 0.9, 1.0]), absent=st.integers(0, 9))
    def remove_scattered(self, seed: int, share: float, absent: int) -> None:
        draw = random.Random(seed)
        wanted = [word for word in self.model if draw.random() < share] + self.draw_run(absent)
        draw.shuffle(wanted)
        self.remove(wanted)

    @rule(step=st.integers(1, 300))
    def remove_one_of_each_stretch(self, step: int) -> None:
        self.remove(list(self.model)[step // 2 :: step])

    def remove(self, wanted: list[int]) -> None:
        taken, queue = self.queue.remove(packed(wanted))
        self.become(queue)
        lookup = set(wanted)
        assert [word for word in self.model if word in lookup] == list(unpack_words(taken))
        self.model = deque(word for word in self.model if word not in lookup)

    @rule(draw=st.data(), count=st.integers(1, 2000), step=st.sampled_from([1, 7, 900]))
    def take_out_and_insert(self, draw: st.DataObject, count: int, step: int) -> None:
        """An ordered queue takes words back where they were."""
        words = list(self.model)
        if sorted(words) == words:
            start = draw.draw(st.integers(0, len(words)), label="start")
            taken, queue = self.queue.remove_ordered(packed(words[start : start + count * step : step]))
            assert words[start : start + count * step : step] == list(unpack_words(taken))
            self.become(queue.insert_ordered(list(unpack_words(taken))))

    @rule(draw=st.data())
    def search(self, draw: st.DataObject) -> None:
        words = list(self.model)
        if words and sorted(words) == words:
            word = draw.draw(st.sampled_from(words), label="word")
            run = list(unpack_words(self.queue.run_above(word)))
            assert words[words.index(word) + 1 :][: max(len(run), 1)] == run
            assert self.queue.holds(word)

    @rule(draw=st.data())
    def return_to_an_old_version(self, draw: st.DataObject) -> None:
        if self.versions:
            queue, words = draw.draw(st.sampled_from(self.versions), label="version")
            self.become(queue)
            self.model = deque(words)

    @invariant()
    def length_and_truth_are_the_model_s(self) -> None:
        assert len(self.model) == len(self.queue)
        assert bool(self.model) == bool(self.queue)

    @invariant()
    def the_last_word_is_the_model_s(self) -> None:
        assert list(self.model)[-1:] == list(unpack_words(self.queue.last()))

    @invariant()
    def its_runs_are_the_same_backward(self) -> None:
        assert list(self.queue.chunks()) == list(self.queue.chunks_backward())[::-1]

    @invariant()
    def all_chunks_are_equally_deep(self) -> None:
        assert len(depths(self.queue._tree)) <= 1

    @invariant()
    def nodes_and_chunks_have_their_limits(self) -> None:
        for one in objects_of(self.queue._tree):
            if type(one) is not tuple:
                assert 0 < count_of(one) <= CHUNK_WORDS
            else:
                assert one or one is self.queue._tree
                assert len(one) <= FANOUT

    @invariant()
    def the_head_holds_words_while_the_tree_does(self) -> None:
        assert not self.queue._tree or self.queue._start < len(self.queue._head)

    def teardown(self) -> None:
        persistent_queue.PLAIN_WORDS_MAX = PLAIN_WORDS_MAX
        for queue, words in [*self.versions, (self.queue, list(self.model))]:
            assert packed(words) == queue.to_bytes()


TestQueueMachine = QueueMachine.TestCase
TestQueueMachine.settings = settings(max_examples=100, stateful_step_count=30, deadline=None)


def test_the_empty_queue_holds_nothing() -> None:
    """The empty queue is false, has no chunks, and stays empty whatever is taken from it."""
    queue = PersistentQueue.empty()

    assert not queue
    assert list(queue.chunks()) == []
    assert queue.head(1) == b""
    assert queue.pop(1) == (b"", EMPTY_QUEUE)
    assert queue.remove(packed([1])) == (b"", EMPTY_QUEUE)
    assert queue.remove(b"") == (b"", EMPTY_QUEUE)


@pytest.mark.parametrize("count", [1, CHUNK_WORDS - 1, CHUNK_WORDS, CHUNK_WORDS + 1, 2 * CHUNK_WORDS + 1])
def test_single_pushes_cross_the_edge_of_a_chunk(count: int) -> None:
    """Words pushed one by one come out one by one in order, whatever edge of a chunk lies between."""
    queue = queue_of(range(count), run=1)

    popped = []
    while queue:
        word, queue = queue.pop(1)
        popped.extend(unpack_words(word))

    assert list(range(count)) == popped


@pytest.mark.parametrize("count", [CHUNK_WORDS - 1, CHUNK_WORDS, CHUNK_WORDS + 1, 3 * CHUNK_WORDS])
def test_a_pop_moves_the_next_chunk_up(count: int) -> None:
    """After a pop that ends at the edge of a chunk, the next one is the head already."""
    queue = queue_of(range(FIVE_CHUNKS))

    taken, rest = queue.pop(count)

    assert list(range(count)) == list(unpack_words(taken))
    assert rest._start < len(rest._head)
    assert rest.head(1) == packed([count])


@pytest.mark.parametrize("count", [CHUNK_WORDS, CHUNK_WORDS + 1, 2 * CHUNK_WORDS + 1])
def test_single_words_are_given_back_across_the_edge_of_a_chunk(count: int) -> None:
    """Words given back one by one stand in the reverse of the order they were given in."""
    queue = EMPTY_QUEUE
    for word in range(count):
        queue = queue.push_front(packed([word]))

    assert list(reversed(range(count))) == list(queue)


@given(st.lists(st.integers(0, 2**64 - 1), unique=True, max_size=50), st.integers(0, 60))
@settings(deadline=None)
def test_a_popped_run_given_back_restores_the_queue(words: list[int], count: int) -> None:
    """push_front undoes pop."""
    queue = queue_of(words)

    taken, rest = queue.pop(count)

    assert queue == rest.push_front(taken)


@given(st.lists(st.integers(1, 700), min_size=1, max_size=12))
@settings(deadline=None)
def test_a_run_is_as_many_runs_of_one(lengths: list[int]) -> None:
    """A queue is equal by content, however its words were pushed and lie in chunks."""
    words = range(sum(lengths))
    by_runs = EMPTY_QUEUE
    start = 0
    for length in lengths:
        by_runs = by_runs.push(packed(words[start : start + length]))
        start += length
    given_back = EMPTY_QUEUE.push(packed(words[lengths[0] :])).push_front(packed(words[: lengths[0]]))

    assert queue_of(words, run=1) == by_runs
    assert by_runs == given_back
    assert by_runs != by_runs.pop(1)[1]
    assert by_runs != by_runs.pop(1)[1].push_front(packed([len(words)]))


def test_a_queue_equals_no_other_type_and_is_not_hashable() -> None:
    """Equality is between queues, and a queue is no key."""
    assert queue_of(range(2)) != packed(range(2))
    with pytest.raises(TypeError):
        hash(EMPTY_QUEUE)


@pytest.mark.parametrize("operation", ["push", "push_front", "remove"])
def test_a_broken_word_is_a_mistake_of_the_caller(operation: str) -> None:
    """A run is a whole number of words."""
    with pytest.raises(AssertionError, match="7 bytes"):
        getattr(EMPTY_QUEUE, operation)(bytes(7))


def test_a_scan_sees_one_version() -> None:
    """Chunks being walked are those of the version the walk began with."""
    queue = queue_of(range(FIVE_CHUNKS))
    walk = queue.chunks()
    first = next(walk)

    queue.remove(packed(range(1, FIVE_CHUNKS, 2)))
    queue.pop(FIVE_CHUNKS)

    assert packed(range(FIVE_CHUNKS)) == first + b"".join(walk)


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


def calls_of(function: Callable[[], object]) -> int:
    """Return how many functions of Python and C a call runs."""
    events: list[str] = []
    sys.setprofile(lambda _frame, event, _argument: events.append(event))
    try:
        function()
    finally:
        sys.setprofile(None)
    return events.count("call") + events.count("c_call")


@pytest.mark.parametrize("place", [0.001, 0.5, 0.999])
def test_a_removal_deep_in_a_queue_reads_one_chunk(place: float) -> None:
    """The first removal out of order, and each later one, costs the same in a queue of any length."""
    for count in (100_000, 3_000_000):
        queue = EMPTY_QUEUE.push(bytes(packed(range(count))))
        for word in (int(place * count), int(place * count) + 50):
            costs = calls_of(lambda queue=queue, word=word: queue.remove_ordered(packed([word])))
            assert costs < 500
            taken, queue = queue.remove_ordered(packed([word]))
            assert taken == packed([word])
            assert calls_of(lambda queue=queue, word=word: queue.remove_ordered(packed([word]))) < 500
            assert not queue.remove_ordered(packed([word]))[0]


@given(
    st.lists(st.integers(0, 6000), unique=True, max_size=40),
    st.integers(0, 5000),
    st.lists(st.integers(0, 6000), max_size=9),
)
@settings(deadline=None)
def test_an_ordered_removal_is_a_removal(wanted: list[int], popped: int, asked: list[int]) -> None:
    """In an ordered queue both give the same words and the same rest; so do the searches of one word."""
    queue = queue_of(range(0, 12_000, 2)).pop(popped)[1]

    taken, rest = queue.remove_ordered(packed(wanted))

    assert (taken, rest) == queue.remove(packed(wanted))
    held = list(rest)
    assert [rest.holds(word) for word in asked] == [word in held for word in asked]
    for word in asked:
        run = unpack_words(rest.run_above(word))
        above = [one for one in held if one > word]
        assert list(run) == above[: len(run)]
        assert bool(run) == bool(above)


@given(
    st.lists(st.integers(0, 6000), unique=True, min_size=1, max_size=40),
    st.integers(0, 3000),
    st.integers(1, 3000),
    st.integers(1, 9),
)
@settings(deadline=None)
def test_an_ordered_insertion_is_a_sort(scattered: list[int], popped: int, run: int, step: int) -> None:
    """Words are inserted where they belong, whatever chunk that is, and however many they are."""
    queue = queue_of(range(0, 12_000, 2)).pop(popped)[1]
    first = scattered[0] * 2 + 1
    fresh = {word * 2 + 1 for word in scattered} | set(range(first, first + 2 * step * run, 2 * step))

    grown = queue.insert_ordered(sorted(fresh))

    assert list(grown) == sorted([*queue, *fresh])
    assert len(grown) == len(list(grown))
    assert len(depths(grown._tree)) <= 1
    assert all(
        0 < count_of(one) <= CHUNK_WORDS if type(one) is not tuple else 0 < len(one) <= FANOUT
        for one in objects_of(grown._tree)
        if one
    )
    assert grown.remove_ordered(packed(sorted(fresh))) == (packed(sorted(fresh)), queue)


def test_scattered_removals_keep_the_order_of_an_unordered_queue() -> None:
    """The words come in the order of the queue, also where the first words of its chunks do not rise."""
    words = [*range(3000, 6000), *range(3000)]
    queue = queue_of(words)

    taken, rest = queue.remove(packed([5, 5000, 3001, 2999]))

    assert list(unpack_words(taken)) == [3001, 5000, 5, 2999]
    assert [word for word in words if word not in {5, 5000, 3001, 2999}] == list(rest)
