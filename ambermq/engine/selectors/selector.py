"""Selectors: an SQL condition over a message's fields, in the syntax of JMS 2.0 (3.8.1), compiled once.

Rule 1: each text gives a Selector, or a SelectorError with position and token.
Rule 2: text, tokens and nesting are bounded, and so is the work of an evaluation. Each literal and name is evaluated
once, and LIKE searches each part of its pattern once (like.py). An evaluation never raises, but may pause
(pausable_fields.py).
Rule 3: a message matches only if the condition is true. Unknown is not true.

The grammar is in selector.lark, the meaning of names in names.py, the logic in terms.py.
"""

import re
import sys
from functools import cache, lru_cache
from typing import Final, final

from lark import Lark, Token, Tree
from lark.exceptions import UnexpectedCharacters, UnexpectedToken, VisitError

from ambermq.engine.errors import SelectorError
from ambermq.engine.selectors.compiler import Compiler, condition_of
from ambermq.engine.selectors.fields import Fields
from ambermq.engine.selectors.terms import Condition

__all__ = ["LONG_TERM_STEPS", "Selector", "SelectorError", "parse_selector", "prepare_parser"]


LONG_TERM_STEPS: Final = 512
"""The steps of a term that may read a long text. Without such terms these are 20 to 40 us."""


@final
class Selector:
    """A compiled selector."""

    __slots__ = ("_condition", "names", "steps", "text")

    def __init__(self, text: str, names: frozenset[str], condition: Condition, long_terms: int = 0) -> None:
        self.text = text
        """The source text of the selector."""
        self.names = names
        """The names of `Fields` that it reads."""
        self.steps = len(text) + LONG_TERM_STEPS * long_terms
        """A measure of the work of an evaluation; `long_terms` are those whose work depends on the message."""
        self._condition = condition

    def __repr__(self) -> str:
        return f"Selector({self.text!r})"

    def matches(self, fields: Fields) -> bool:
        """Return whether the condition is true for a message, not false or unknown."""
        return self._condition(fields.get) is True


def parse_selector(text: str, *, bytes_max: int = 4096, depth_max: int = 64, tokens_max: int = sys.maxsize) -> Selector:
    """Compile a selector.

    Raises SelectorError if it is invalid, longer than `bytes_max` in UTF-8, has more than `tokens_max` tokens, or is
    nested too deep. A blank text is refused too. In JMS it means no selector; the caller handles that case.
    """
    _check_length(text, bytes_max)
    _check_tokens(text, tokens_max)
    return _compiled(text, depth_max)


@lru_cache(maxsize=16)
def _compiled(text: str, depth_max: int) -> Selector:
    """Return the selector of a text. An attach needs it more than once, and a token takes 5 to 9 us each time."""
    compiler = Compiler(depth_max)
    try:
        condition = condition_of(compiler.transform(_parse(text)))
    except VisitError as failure:
        if isinstance(failure.orig_exc, SelectorError):
            raise failure.orig_exc from None
        raise
    return Selector(text, frozenset(compiler.names), condition, compiler.long_terms)


def prepare_parser() -> None:
    """Build the parser, so that no selector waits for it later: that takes 30 to 100 ms, once in a process."""
    _parser()


def _check_length(text: str, bytes_max: int) -> None:
    encoded = text.encode(errors="surrogatepass")
    if len(encoded) > bytes_max:
        position = len(encoded[:bytes_max].decode(errors="ignore"))
        reason = f"it has {len(encoded)} bytes, at most {bytes_max} are allowed"
        raise SelectorError(reason, position=position, token=text[position:])


def _check_tokens(text: str, tokens_max: int) -> None:
    # The parser takes up to 9 us a token, so the tokens are counted without it.
    if len(text) <= tokens_max:
        return
    for count, found in enumerate(_TOKEN.finditer(text), 1):
        if count > tokens_max:
            reason = f"it has more than {tokens_max} tokens (selector_tokens_max)"
            raise SelectorError(reason, position=found.start(), token=found.group())


def _parse(text: str) -> Tree[Token]:
    try:
        return _parser().parse(text)
    except UnexpectedCharacters as failure:
        position = failure.pos_in_stream or 0
        character = text[position]
        reason = _UNCLOSED.get(character, "not allowed outside quotes")
        token = text[position:] if character in _UNCLOSED else character
        raise SelectorError(reason, position=position, token=token) from None
    except UnexpectedToken as failure:
        is_end = failure.token.type == "$END"
        position = len(text) if is_end else failure.token.start_pos or 0
        reason = f"expected {_words(failure.accepts)}"
        raise SelectorError(reason, position=position, token="" if is_end else str(failure.token)) from None


@cache
def _parser() -> Lark:
    """Return the parser. It is built once, at the first use."""
    # The basic lexer, because keywords are reserved everywhere: the contextual one reads a misplaced one as a name.
    return Lark.open("selector.lark", rel_to=__file__, parser="lalr", lexer="basic")


def _words(terminals: set[str]) -> str:
    """Return the names of the tokens that may come next, in the order of the table."""
    missing = _BEGINNINGS if "IDENTIFIER" in terminals else frozenset()
    known = [words for name, words in _EXPECTED.items() if name in terminals and name not in missing]
    return ", ".join(known)


_TOKEN: Final = re.compile(r"""'[^']*'|"[^"]*"|[\w$.]+|<>|<=|>=|[^\s]""")
"""A string, a quoted name, a word, a number, or a sign. A doubled quote within a string counts as two strings."""
_UNCLOSED: Final = {"'": "a string without its closing quote", '"': "a name without its closing quote"}
_BEGINNINGS: Final = frozenset(("STRING", "LPAR", "SIGN", "NOT"))
_EXPECTED: Final = {
    "IDENTIFIER": "a name, a literal or (",
    "STRING": "a string",
    "LPAR": "(",
    "RPAR": ")",
    "COMMA": ",",
    "COMPARATOR": "a comparison",
    "SIGN": "+ or -",
    "SCALE": "* or /",
    "NOT": "NOT",
    "_BETWEEN": "BETWEEN",
    "_IN": "IN",
    "_LIKE": "LIKE",
    "_ESCAPE": "ESCAPE",
    "_IS": "IS",
    "_NULL": "NULL",
    "_AND": "AND",
    "_OR": "OR",
    "$END": "the end",
}
