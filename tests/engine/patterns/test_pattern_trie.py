"""A trie finds the patterns that match a text, as asking each of them would."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ambermq.engine.patterns import pattern_trie
from ambermq.engine.patterns.pattern import WORDS_MAX
from ambermq.engine.patterns.pattern_trie import PatternTrie
from ambermq.engine.patterns.words import Words
from tests.engine.routing.wirings import SEPARATORS


@st.composite
def _cases(draw: st.DrawFn) -> tuple[str, list[str], list[str], list[str]]:
    """Separator, patterns, those of them removed again, texts."""
    separator = draw(st.sampled_from(SEPARATORS))
    words = st.sampled_from(("", "a", "b", ":", "*", "#", "#"))
    texts = st.lists(words, min_size=1, max_size=5).map(separator.join)
    patterns = draw(st.lists(texts, min_size=1, max_size=60, unique=True))
    gone = draw(st.lists(st.sampled_from(patterns), unique=True, max_size=20))
    return separator, patterns, gone, draw(st.lists(texts, min_size=1, max_size=4))


@pytest.mark.parametrize("few", [0, 1, 8])
def test_it_finds_what_matches(few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """However deep it searches by bisection before it compares one by one."""
    monkeypatch.setattr(pattern_trie, "_FEW", few)

    @settings(max_examples=150, deadline=None, database=None)
    @given(case=_cases())
    def law(case: tuple[str, list[str], list[str], list[str]]) -> None:
        separator, patterns, gone, texts = case
        trie: PatternTrie[str] = PatternTrie(separator)
        for pattern in patterns:
            trie[pattern] = pattern
        for stage in ((), gone):
            for pattern in stage:
                del trie[pattern]
            left = set(patterns) - set(stage)
            for text in texts:
                words = Words(text.split(separator))
                assert sorted(trie.match(text)) == sorted(one for one in left if words.match(one.split(separator)))

    law()


@pytest.mark.parametrize("few", [0, 8])
@pytest.mark.parametrize(("separator", "pattern", "text"), [("::", ":::#", ":"), ("aba", "ababa#", "ab")])
def test_a_word_that_ends_as_a_separator_begins_is_one_word(
    separator: str, pattern: str, text: str, few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`:::#` between `::` is the words "" and ":#", though it goes on where the word ":" and `::` end."""
    monkeypatch.setattr(pattern_trie, "_FEW", few)
    trie: PatternTrie[int] = PatternTrie(separator)
    trie[pattern] = 1
    assert trie.match(text) == []
    assert trie.match(pattern) == [1]


def test_a_pattern_is_kept_once() -> None:
    """What is set again is another value, and one deletion removes it."""
    trie: PatternTrie[int] = PatternTrie(".")
    trie["a.*"] = 1
    trie["a.*"] = 2
    assert trie.get("a.*") == 2
    assert trie.match("a.b") == [2]
    del trie["a.*"]
    assert trie.match("a.b") == []
    assert len(trie) == 0


def test_many_patterns_with_many_signs_are_searched_in_bounded_steps() -> None:
    """Each node is visited once for each number of words taken, whatever the number of ways that lead there."""
    trie: PatternTrie[int] = PatternTrie(".")
    for number in range(200):
        trie["#.a." * 40 + f"#.{number}"] = number
    assert trie.match("a." * (WORDS_MAX - 1) + "7") == [7]


def test_a_text_of_too_many_words_matches_nothing() -> None:
    """What a peer sends is looked at as far as a bound."""
    trie: PatternTrie[int] = PatternTrie(".")
    trie["#"] = 1
    assert trie.match("." * (WORDS_MAX - 1)) == [1]
    assert trie.match("." * WORDS_MAX) == []
