"""Patterns over words: all ways at once are what trying each way is."""

from hypothesis import given, settings
from hypothesis import strategies as st

from ambermq.engine.patterns.pattern import WORDS_MAX
from ambermq.engine.patterns.words import Words
from tests.engine.routing.naive import naive_words_match

_WORDS = st.lists(st.sampled_from(("", "a", "b", "*", "#")), max_size=7)


@settings(max_examples=300, deadline=None)
@given(pattern=_WORDS, words=_WORDS)
def test_words_match_as_the_recursion_says(pattern: list[str], words: list[str]) -> None:
    """`*` takes one word, `#` any number."""
    assert Words(words).match(pattern) == naive_words_match(pattern, words)


@settings(max_examples=100, deadline=None)
@given(pattern=_WORDS, words=_WORDS)
def test_steps_are_the_ways_a_pattern_goes(pattern: list[str], words: list[str]) -> None:
    """Going by steps alone, a pattern gets as far as a match."""
    searched, taken = Words(words), 1
    for word in pattern:
        taken = dict(searched.steps(taken)).get(word, 0) if taken else 0
    assert (taken >= searched.end) == naive_words_match(pattern, words)


def test_the_work_is_one_step_a_word() -> None:
    """As many `#` as a pattern may have, over as many words as a text may have, where nothing matches."""
    assert not Words(["a"] * WORDS_MAX).match(["#", "a"] * 60 + ["b"])
