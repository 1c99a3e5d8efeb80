"""A persistent queue against a deque, with every version kept and looked at again at the end."""

import random
import sys
from collections import deque
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from ambermq.snapshot import persistent_queue
from ambermq.snapshot.chunk_tree import FANOUT
from ambermq.snapshot.compressed_chunk import count_of
from ambermq.snapshot.persistent_queue import EMPTY_QUEUE, PersistentQueue
from ambermq.snapshot.word_chunk import CHUNK_WORDS, unpack_words
from tests.snapshot.tree_walk import depths, objects_of
from tests.snapshot.words import FIVE_CHUNKS, packed, queue_of

PLAIN_WORDS_MAX = persistent_queue.PLAIN_WORDS_MAX
LENGTHS = st.one_of(
    st.integers(1, 9),
    st.sampled_from([CHUNK_WORDS // 2, CHUNK_WORDS - 1, CHUNK_WORDS, CHUNK_WORDS + 1, 3 * CHUNK_WORDS]),
)


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
