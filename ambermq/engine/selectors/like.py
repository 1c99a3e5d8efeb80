"""LIKE: `%` stands for any characters, `_` for one, and what follows the escape character for itself.

Rule: matching never goes back. What stands between two `%` is found where it first occurs and is not looked for again:
an atomic group of the regular expression. So the steps are at most the pattern's length times the text's, and a text
longer than LIKE_CHARACTERS_MAX is not looked at.
"""

import re
from collections.abc import Callable
from typing import Final

__all__ = ["LIKE_CHARACTERS_MAX", "compile_like"]

LIKE_CHARACTERS_MAX: Final = 8_192
"""The longest text that is matched: with a pattern of 4,096 characters, made to be slow, that is 60 ms."""


def compile_like(pattern: str, escape: str = "") -> Callable[[str], bool | None]:
    """Make the function from a text to whether it matches, None where it is too long to say.

    `escape` is one character, or "" for none. Raises ValueError where the pattern ends with it.
    """
    pieces = _pieces(pattern, escape)
    expression = pieces[0]
    if len(pieces) > 1:
        found = "".join(f"(?>.*?{piece})" for piece in pieces[1:-1] if piece)
        expression += found + (f".*{pieces[-1]}" if pieces[-1] else "")
    if len(pieces) == 1 or pieces[-1]:
        expression += r"\Z"
    match = re.compile(expression, re.DOTALL).match

    def matches(text: str) -> bool | None:
        return None if len(text) > LIKE_CHARACTERS_MAX else match(text) is not None

    return matches


def _pieces(pattern: str, escape: str) -> list[str]:
    """Write what stands between the `%` as regular expressions; each of them matches one length alone."""
    pieces = [""]
    characters = iter(pattern)
    for character in characters:
        if character == escape:
            escaped = next(characters, None)
            if escaped is None:
                raise ValueError(f"the pattern {pattern!r} ends with its escape character")
            pieces[-1] += re.escape(escaped)
        elif character == "%":
            pieces.append("")
        else:
            pieces[-1] += "." if character == "_" else re.escape(character)
    return pieces
