"""Walks over returned messages: each visits each return once, whatever other consumers do."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from ambermq.engine.dispatch import returned_walk
from ambermq.engine.dispatch.returned_walk import ReturnedCursor, ReturnJournal
from ambermq.engine.entries.entry_word import make_words, pack_words, unpack_words
from ambermq.engine.entries.outcome import MODIFIED_FAILED, RELEASED
from ambermq.engine.model.queue import new_queue
from ambermq.engine.settings.queue_settings import Settings


class WalkMachine(RuleBasedStateMachine):
    """Three walks over a queue whose messages are taken and come back; the journal may miss a return."""

    @initialize(count=st.sampled_from([10, 3000]))
    def begin(self, count: int) -> None:
        self.queue = new_queue(1, "q", Settings()).push(make_words(10, [100] * count), 100 * count, 0)
        self.journal = ReturnJournal()
        self.cursors = [ReturnedCursor() for _ in range(3)]
        self.due: list[set[int]] = [set(), set(), set()]
        """The returned words that each walk has not visited since their last return."""
        self.visits = [0, 0, 0]
        self.returns = 0

    @rule(start=st.floats(0, 1), count=st.one_of(st.integers(1, 9), st.integers(1, 1500)), is_ready=st.booleans())
    def acquire(self, start: float, count: int, *, is_ready: bool) -> None:
        words = list(self.queue.ready if is_ready else self.queue.returned)
        first = int(start * len(words))
        taken = words[first : first + count]
        self.queue = self.queue.acquire((7,), pack_words(taken))
        for due in self.due:
            due.difference_update(taken)

    @rule(
        draw=st.randoms(use_true_random=False),
        share=st.sampled_from([0.01, 0.5, 1.0]),
        failed=st.booleans(),
        noted=st.integers(0, 9),
    )
    def give_back(self, draw: object, share: float, noted: int, *, failed: bool) -> None:
        held = list(self.queue.held_by(7))
        words = [word for word in held if draw.random() < share]  # type: ignore[attr-defined]
        draw.shuffle(words)  # type: ignore[attr-defined]
        self.queue = self.queue.settle(7, pack_words(words), MODIFIED_FAILED if failed else RELEASED)
        self.returns += len(words)
        if noted:
            self.journal.note(pack_words(words))
        for due in self.due:
            due.update(words)

    @rule(before=st.floats(0, 1))
    def purge(self, before: float) -> None:
        self.queue = self.queue.purge(int(before * 3000))
        for due in self.due:
            due.intersection_update(self.queue.returned)

    @rule(walks=st.sets(st.integers(0, 2), min_size=1), count=st.sampled_from([1, 7, 2000]), share=st.floats(0, 1))
    def walk(self, walks: set[int], count: int, share: float) -> None:
        """Visit a part of what is ahead of some walks."""
        visits = self.journal.ahead(self.queue, [self.cursors[walk] for walk in walks], count)
        assert len(visits.words) <= count
        passed = max(1, int(share * len(visits.words)))
        for walk in walks if visits.words else ():
            visits.passed(self.cursors[walk], passed)
            self.due[walk].difference_update(visits.words[:passed])
        assert set(visits.words) <= set(self.queue.returned)

    @rule(walks=st.sets(st.integers(0, 2), min_size=1))
    def walk_to_the_end(self, walks: set[int]) -> None:
        cursors = [self.cursors[walk] for walk in walks]
        while (visits := self.journal.ahead(self.queue, cursors, 2000)).words:
            for walk in walks:
                visits.passed(self.cursors[walk], len(visits.words))
                self.due[walk].difference_update(visits.words)
        for walk in walks:
            assert not self.due[walk]


TestWalk = WalkMachine.TestCase
TestWalk.settings = settings(max_examples=80, stateful_step_count=40, deadline=None)


def test_a_walk_does_not_begin_anew_for_what_others_take_and_give_back() -> None:
    """Ten thousand returns of single messages among five thousand are ten thousand visits, and a few times all."""
    count = 5000
    words = make_words(10, [100] * count)
    queue = new_queue(1, "q", Settings()).push(words, 100 * count, 0).acquire((7,), words).settle(7, words, RELEASED)
    journal, cursor, visited = ReturnJournal(), ReturnedCursor(), 0
    for turn in range(10_001):
        while (visits := journal.ahead(queue, [cursor], 2000)).words:
            visited += len(visits.words)
            visits.passed(cursor, len(visits.words))
        word = words[turn * 37 % count * 8 :][:8]
        queue = queue.acquire((7,), word).settle(7, word, RELEASED)
        journal.note(word)
    assert visited <= 10_000 + 4 * count


def test_a_walk_goes_back_only_to_what_is_still_returned() -> None:
    """A message that came back and went to another consumer is not dealt a second time."""
    queue, words = new_queue(1, "q", Settings()), make_words(10, [100] * 3)
    queue = queue.push(words, 300, 0).acquire((7,), words).settle(7, words, RELEASED)
    journal, cursor = ReturnJournal(), ReturnedCursor()
    journal.note(words)
    one, two, three = unpack_words(words)
    cursor.position, cursor.seen = three, 0
    queue = queue.acquire((8,), pack_words([two]))
    assert list(journal.ahead(queue, [cursor], 10).words) == [one, three]
    cursor.position, cursor.seen = one, 0
    assert list(journal.ahead(queue, [cursor], 10).words) == [one]


def test_a_walk_in_short_steps_visits_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """A call looks at a limited number of words of the journal, and goes on in the next one."""
    monkeypatch.setattr(returned_walk, "_SCANNED_MAX", 2)
    run_state_machine_as_test(WalkMachine, settings=settings(max_examples=20, deadline=None))  # type: ignore[no-untyped-call]


def test_a_word_that_came_back_twice_is_visited_once() -> None:
    """Two visits in one call would deliver the message twice."""
    queue, journal, cursor = new_queue(1, "q", Settings()), ReturnJournal(), ReturnedCursor()
    queue = queue.push(make_words(10, [100] * 2), 200, 0)
    words = list(queue.ready)
    for count in (2, 1, 1):
        some = pack_words(words[:count])
        queue = queue.acquire((7,), some).settle(7, some, RELEASED)
        journal.note(some)
        if count == 2:
            visits = journal.ahead(queue, [cursor], 9)
            visits.passed(cursor, len(visits.words))
    visits = journal.ahead(queue, [cursor], 9)
    assert list(visits.words) == words[:1]
    visits.passed(cursor, 1)
    assert not journal.ahead(queue, [cursor], 9).words
