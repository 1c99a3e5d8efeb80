"""LIKE: patterns against the definition."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ambermq.engine.selectors.like import LIKE_CHARACTERS_MAX, compile_like
from tests.engine.routing.selector_trees import like_reference, patterns


@settings(max_examples=400, deadline=None)
@given(patterns, st.text("ab%_!.*\n", max_size=9))
@example(("%ab%", ""), "aab")
@example(("a%_b%a", ""), "aabba")
@example(("a", ""), "a\n")
def test_like_equals_the_definition(pattern: tuple[str, str], text: str) -> None:
    """A pattern matches what its definition matches, line breaks too."""
    assert compile_like(*pattern)(text) is like_reference(*pattern, text)


def test_escaped_characters_stand_for_themselves() -> None:
    """What follows the escape character is a character like any other, that one too."""
    matches = compile_like("a!%!_!!!b%", "!")
    assert matches("a%_!bc") is True
    assert matches("axx!bc") is False


def test_escape_at_the_end() -> None:
    """A pattern that ends with its escape character escapes nothing, and is refused."""
    with pytest.raises(ValueError, match="ends with its escape character"):
        compile_like("a%!", "!")


def test_too_long_texts_are_unknown() -> None:
    """A text of LIKE_CHARACTERS_MAX characters is matched, a longer one is not looked at."""
    matches = compile_like("a%")
    assert matches("a" * LIKE_CHARACTERS_MAX) is True
    assert matches("a" * (LIKE_CHARACTERS_MAX + 1)) is None
