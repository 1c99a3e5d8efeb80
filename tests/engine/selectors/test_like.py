"""LIKE: patterns against the definition."""

import time
from unittest import mock

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ambermq.engine.selectors.like import compile_like
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


PIECES = st.lists(st.sampled_from(["a", "b", "ab", "_", "__", "%", "\u00e9", "\U0001f600"]), max_size=12)


@settings(max_examples=400, deadline=None)
@given(PIECES, st.text("ab\u00e9\U0001f600\ud800", max_size=60), st.integers(1, 40))
def test_a_search_by_bits_finds_the_same(pieces: list[str], text: str, block: int) -> None:
    """A piece with `_` is found wherever it is: by comparison, by bits, and across blocks of text."""
    pattern = "".join(pieces)
    expected = like_reference(pattern, "", text)
    assert compile_like(pattern)(text) is expected
    with mock.patch.multiple("ambermq.engine.selectors.like", _BLOCK=block, _COMPARED_MAX=0):
        assert compile_like(pattern)(text) is expected


@pytest.mark.parametrize("length", [8193, 100_000, 1_000_000])
def test_a_text_of_any_length_is_matched(length: int) -> None:
    """No text is too long, at its start, in between and at its end."""
    text = "a" * length + "b"
    assert compile_like("%a_%b")(text) is True
    assert compile_like("a%")(text) is True
    assert compile_like("%b%a%")(text) is False
    assert compile_like("_" * 100 + "%a_b_%")(text) is False


@pytest.mark.parametrize(
    "pattern",
    [
        f"%{'a' * 2000}b%",
        f"%{'a' * 1000}b{'a' * 1000}%",
        f"%{'a_' * 2000}c%",
        f"%{'a_b%' * 1000}c%",
        f"%{'a' * 49}b{'a' * 49}%",
        f"%{'_' * 4000}b%",
    ],
    ids=["run", "middle", "wild", "many", "short", "any"],
)
def test_no_pattern_is_slow(pattern: str) -> None:
    """A pattern of 4,000 characters costs a bounded time on a text of 8,192: not pattern times text in steps."""
    matches, text = compile_like(pattern), ("bc" + "a" * 8190)
    seconds = []
    for _ in range(5):
        began = time.process_time()
        matches(text)
        seconds.append(time.process_time() - began)
    assert min(seconds) < 0.01
