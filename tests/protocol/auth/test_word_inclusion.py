"""Inclusion and overlap of patterns are exact: they agree with an enumeration of texts."""

from itertools import product

from hypothesis import given, settings
from hypothesis import strategies as st

from ambermq.engine.patterns.words import Words
from ambermq.protocol.auth.word_inclusion import is_inside, overlaps

PATTERNS = st.lists(st.sampled_from(["a", "b", "*", "#"]), min_size=1, max_size=4).map(tuple)
TEXTS = [text for length in range(8) for text in product("abx", repeat=length)]
"""All texts of two words of the patterns and one other, longer than two patterns."""


def matched(pattern: tuple[str, ...]) -> set[tuple[str, ...]]:
    """Return the texts that a pattern matches."""
    return {text for text in TEXTS if Words(text).match(pattern)}


@settings(deadline=None, max_examples=150)
@given(PATTERNS, PATTERNS)
def test_inclusion_is_that_of_the_texts(inner: tuple[str, ...], outer: tuple[str, ...]) -> None:
    """A pattern is inside another one if each text of it is a text of the other."""
    assert is_inside(inner, outer) == (matched(inner) <= matched(outer))


@settings(deadline=None, max_examples=150)
@given(PATTERNS, PATTERNS)
def test_an_overlap_is_a_common_text(one: tuple[str, ...], other: tuple[str, ...]) -> None:
    """Two patterns overlap if a text is of both."""
    assert overlaps(one, other) == bool(matched(one) & matched(other))
    assert overlaps(one, other) == overlaps(other, one)


def test_a_pattern_that_would_take_very_long_is_not_inside() -> None:
    """A peer writes the inner pattern: its cost is bounded, and the answer is no."""
    inner = ("#", "a") * 60
    assert not is_inside(inner, ("#", "a", *["*"] * 40, "#", "b"))
    assert is_inside(inner, ("#", "a", "#"))
