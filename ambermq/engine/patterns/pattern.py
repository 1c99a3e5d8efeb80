"""Patterns: words between separators. The word `*` matches any one word, `#` matches any number of words, also none.

Rule 1. An empty word is a word: `a..b` has three words, and `a.*.b` matches it. `*` matches the empty text.
Rule 2. `*` and `#` are whole words. `a*` is refused, because it looks like a prefix match and is none.
Rule 3. Words are the parts that `str.split` returns: a separator of several characters is found from the left.
Rule 4. A text of more than WORDS_MAX words matches no pattern, not even `#`. A peer writes the text, so it is bounded.
"""

from typing import Final

from ambermq.engine.errors import PatternError

__all__ = [
    "ANY_WORD",
    "ANY_WORDS",
    "PATTERN_LENGTH_MAX",
    "SEPARATOR_LENGTH_MAX",
    "WORDS_MAX",
    "check_pattern",
    "check_separator",
]

ANY_WORD: Final = "*"
ANY_WORDS: Final = "#"

PATTERN_LENGTH_MAX: Final = 1024
"""Characters of a pattern."""
WORDS_MAX: Final = 128
"""Words of a pattern, and of a text that is matched."""
SEPARATOR_LENGTH_MAX: Final = 8
"""Characters of a separator."""


def check_pattern(text: str, separator: str) -> None:
    """Raise PatternError if a text is not a valid pattern; `separator` is valid."""
    if not text:
        raise PatternError(text, "a pattern has at least one word: # matches everything", position=0)
    if len(text) > PATTERN_LENGTH_MAX:
        reason = f"it has {len(text)} characters, at most {PATTERN_LENGTH_MAX} are allowed"
        raise PatternError(text, reason, position=PATTERN_LENGTH_MAX)
    position = 0
    for number, word in enumerate(text.split(separator)):
        if number == WORDS_MAX:
            raise PatternError(text, f"at most {WORDS_MAX} words are allowed", position=position)
        _check_word(text, word, position)
        position += len(word) + len(separator)


def _check_word(text: str, word: str, position: int) -> None:
    if word in {ANY_WORD, ANY_WORDS}:
        return
    for wild in (ANY_WORD, ANY_WORDS):
        if wild in word:
            reason = f"{wild} stands for whole words: write it as a word of its own; found {word[:40]!r}"
            raise PatternError(text, reason, position=position + word.index(wild))


def check_separator(separator: str) -> None:
    """Raise PatternError if a text is not a valid separator."""
    if not 0 < len(separator) <= SEPARATOR_LENGTH_MAX:
        reason = f"a separator has 1 to {SEPARATOR_LENGTH_MAX} characters, this has {len(separator)}"
        raise PatternError(separator, reason, position=min(len(separator), SEPARATOR_LENGTH_MAX))
    for position, character in enumerate(separator):
        if character in {ANY_WORD, ANY_WORDS} or not character.isprintable():
            reason = "a separator has only printable characters, without * and #"
            raise PatternError(separator, reason, position=position)
