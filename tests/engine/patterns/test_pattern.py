"""Patterns of words: which are refused, where and why."""

import pytest

from ambermq.engine.errors import PatternError
from ambermq.engine.patterns.pattern import (
    PATTERN_LENGTH_MAX,
    SEPARATOR_LENGTH_MAX,
    WORDS_MAX,
    check_pattern,
    check_separator,
)


@pytest.mark.parametrize("text", ["a", "*", "#", "a.*.#", "..", "a..b", ".", "#.#", "é.ü", "a" * PATTERN_LENGTH_MAX])
def test_patterns(text: str) -> None:
    """Any words, empty ones too, and `*` and `#` as words of their own."""
    check_pattern(text, ".")


@pytest.mark.parametrize(
    ("text", "position", "reason"),
    [
        ("", 0, "at least one word"),
        ("a*", 1, "a word of its own; found 'a\\*'"),
        ("ab.c#.*", 4, "a word of its own; found 'c#'"),
        ("#.**", 2, "a word of its own"),
        ("a" * (PATTERN_LENGTH_MAX + 1), PATTERN_LENGTH_MAX, "at most 1024"),
        ("." * WORDS_MAX, WORDS_MAX, "at most 128 words"),
    ],
)
def test_what_is_no_pattern(text: str, position: int, reason: str) -> None:
    """The message says where it goes wrong and why."""
    with pytest.raises(PatternError, match=f"at character {position}: .*{reason}") as caught:
        check_pattern(text, ".")
    assert caught.value.position == position


def test_the_position_counts_long_separators() -> None:
    """It is a character of the text, whatever separates the words."""
    with pytest.raises(PatternError) as caught:
        check_pattern("a::b::c*", "::")
    assert caught.value.position == 7


@pytest.mark.parametrize("separator", [".", "/", "::", "é", "-" * SEPARATOR_LENGTH_MAX])
def test_separators(separator: str) -> None:
    """One printable character or a few."""
    check_separator(separator)


@pytest.mark.parametrize(
    ("separator", "position"),
    [("", 0), ("*", 0), (".#", 1), (".\n", 1), ("\U0010ffff", 0), ("-" * (SEPARATOR_LENGTH_MAX + 1), 8)],
)
def test_what_is_no_separator(separator: str, position: int) -> None:
    """What could not be told from a pattern's own signs, or cannot be read."""
    with pytest.raises(PatternError) as caught:
        check_separator(separator)
    assert caught.value.position == position
