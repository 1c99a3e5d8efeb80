"""The compiler of selectors: from the parse tree to closures, bottom up and without recursion.

Rule 1: each term has a kind. A term of a wrong kind is refused at its position: a value as a condition, a condition as
a value, arithmetic with texts, an ordering of texts. A field can have any type, so it is allowed everywhere.
Rule 2: only parentheses, NOT and signs nest, and each counts one. So the depth bounds the stack of an evaluation.
Rule 3: arithmetic on literals is computed once, here.
"""

import re
from collections.abc import Callable
from enum import Enum
from typing import Any, Final, final

from lark import Token, v_args
from lark.visitors import Transformer_NonRecursive

from ambermq.engine.errors import SelectorError
from ambermq.engine.selectors import terms
from ambermq.engine.selectors.like import compile_like
from ambermq.engine.selectors.names import field_of

__all__ = ["Compiler", "Kind", "Term"]


class Kind(Enum):
    """The kinds of terms that the compiler knows without a message."""

    CONDITION = "a condition"
    FIELD = "a name"
    NUMBER = "a number"
    TEXT = "a string"
    BOOLEAN = "a boolean"


@final
class Term:
    """A part of a selector."""

    __slots__ = ("depth", "evaluate", "kind", "literal", "plain_name", "token")

    def __init__(
        self,
        kind: Kind,
        evaluate: Callable[[terms.Get], Any],
        token: Token,
        *,
        depth: int = 0,
        literal: Any = None,
        plain_name: str = "",
    ) -> None:
        self.kind = kind
        self.evaluate = evaluate
        """A Condition if that is the kind, else a Value."""
        self.token = token
        """The first token of the term."""
        self.depth = depth
        self.literal = literal
        """The value of a constant term, else None."""
        self.plain_name = plain_name
        """The name of a field that is used without a conversion, else empty."""


@v_args(inline=True)
class Compiler(Transformer_NonRecursive[Token, Term]):
    """The compiler of one selector; its methods are the rules of selector.lark.

    `transform` returns the term of the whole selector, and then `names` has its fields. It raises lark's VisitError
    around a SelectorError.
    """

    def __init__(self, depth_max: int) -> None:
        super().__init__(visit_tokens=False)
        self.names: set[str] = set()
        self.long_terms = 0
        """The terms that may read a long text: LIKE, and converted fields."""
        self._depth_max = depth_max

    def identifier(self, token: Token) -> Term:
        """Compile an unquoted name."""
        try:
            name, show = field_of(str(token))
        except KeyError:
            raise _refused(token, f"no message has a field {token}") from None
        self.names.add(name)
        if show is not None:
            self.long_terms += 1
            return Term(Kind.FIELD, terms.shown_field(name, show), token)
        return Term(Kind.FIELD, terms.field(name), token, plain_name=name)

    def quoted(self, token: Token) -> Term:
        """Compile a name between double quotes, which is a name of `Fields`."""
        name = token[1:-1].replace('""', '"')
        if not name:
            raise _refused(token, "expected a name between the quotes")
        self.names.add(name)
        return Term(Kind.FIELD, terms.field(name), token, plain_name=name)

    def exact(self, token: Token) -> Term:
        """Compile an integer in Java's syntax."""
        return _number(token, _integer)

    def approximate(self, token: Token) -> Term:
        """Compile a floating-point number in Java's syntax."""
        return _number(token, _float)

    def string(self, token: Token) -> Term:
        """Compile a text."""
        return _literal(Kind.TEXT, _text(token), token)

    def true(self, token: Token) -> Term:
        """Compile TRUE."""
        return _literal(Kind.BOOLEAN, True, token)

    def false(self, token: Token) -> Term:
        """Compile FALSE."""
        return _literal(Kind.BOOLEAN, False, token)

    def group(self, token: Token, term: Term) -> Term:
        """Compile parentheses: the term itself, one deeper."""
        depth = self._deeper(token, term)
        return Term(term.kind, term.evaluate, token, depth=depth, literal=term.literal, plain_name=term.plain_name)

    def signed(self, sign: Token, term: Term) -> Term:
        """Compile a sign before a number: 0 - number, 0 + number."""
        zero = _literal(Kind.NUMBER, 0, sign)
        return _calculated(zero, [(sign, term)], self._deeper(sign, term))

    def calculated(self, first: Term, *rest: Any) -> Term:
        """Compile a chain of + and -, or of * and /."""
        steps = list(zip(rest[::2], rest[1::2], strict=True))
        return _calculated(first, steps, max(term.depth for term in (first, *rest[1::2])))

    def compared(self, left: Term, comparator: Token, right: Term) -> Term:
        """Compile = <> < <= > >=."""
        check = _value if comparator in _EQUALITIES else _numeric
        check(left)
        check(right)
        return _condition(_comparison(str(comparator), left, right), left, right)

    def between(self, value: Term, low: Term, high: Term) -> Term:
        """Compile BETWEEN."""
        parts = _numeric(value), _numeric(low), _numeric(high)
        return _condition(terms.between(*parts), value, low, high)

    def not_between(self, value: Term, _not: Token, low: Term, high: Term) -> Term:
        """Compile NOT BETWEEN."""
        parts = _numeric(value), _numeric(low), _numeric(high)
        return _condition(terms.not_between(*parts), value, low, high)

    def one_of(self, value: Term, *texts: Token) -> Term:
        """Compile IN."""
        return _condition(terms.one_of(_field(value), frozenset(map(_text, texts))), value)

    def not_one_of(self, value: Term, _not: Token, *texts: Token) -> Term:
        """Compile NOT IN."""
        return _negated(self.one_of(value, *texts))

    def like(self, value: Term, pattern: Token, escape: Token | None) -> Term:
        """Compile LIKE."""
        self.long_terms += 1
        character = "" if escape is None else _text(escape)
        if escape is not None and len(character) != 1:
            raise _refused(escape, "expected one character to escape with")
        try:
            matches = compile_like(_text(pattern), character)
        except ValueError as failure:
            raise _refused(pattern, str(failure)) from failure
        return _condition(terms.like(_field(value), matches), value)

    def not_like(self, value: Term, _not: Token, pattern: Token, escape: Token | None) -> Term:
        """Compile NOT LIKE."""
        return _negated(self.like(value, pattern, escape))

    def null(self, value: Term) -> Term:
        """Compile IS NULL."""
        return _condition(terms.null(_field(value)), value)

    def not_null(self, value: Term, _not: Token) -> Term:
        """Compile IS NOT NULL."""
        return _negated(self.null(value))

    def negated(self, token: Token, term: Term) -> Term:
        """Compile NOT."""
        return Term(Kind.CONDITION, terms.negated(condition_of(term)), token, depth=self._deeper(token, term))

    def all_of(self, *parts: Term) -> Term:
        """Compile a chain of AND."""
        return _condition(terms.all_of([condition_of(part) for part in parts]), *parts)

    def any_of(self, *parts: Term) -> Term:
        """Compile a chain of OR."""
        return _condition(terms.any_of([condition_of(part) for part in parts]), *parts)

    def _deeper(self, token: Token, term: Term) -> int:
        if term.depth >= self._depth_max:
            raise _refused(token, f"nested deeper than {self._depth_max}")
        return term.depth + 1


def condition_of(term: Term) -> terms.Condition:
    """Return a term as a condition; a boolean and a field can be one. Raises SelectorError for other terms."""
    if term.kind is Kind.CONDITION:
        return term.evaluate
    if term.kind in {Kind.FIELD, Kind.BOOLEAN}:
        return terms.truth(term.evaluate)
    raise _refused(term.token, f"expected a condition, found {term.kind.value}")


def _value(term: Term) -> terms.Value:
    if term.kind is Kind.CONDITION:
        raise _refused(term.token, "expected a value, found a condition")
    return term.evaluate


def _numeric(term: Term) -> terms.Value:
    if term.kind not in {Kind.NUMBER, Kind.FIELD}:
        raise _refused(term.token, f"expected a number or a name, found {term.kind.value}")
    return term.evaluate


def _field(term: Term) -> terms.Value:
    if term.kind is not Kind.FIELD:
        raise _refused(term.token, f"expected a name, found {term.kind.value}")
    return term.evaluate


def _comparison(comparator: str, left: Term, right: Term) -> terms.Condition:
    """Return the closure of a comparison; a name and a literal have a faster one."""
    if left.literal is not None and right.plain_name:
        return _comparison(_MIRRORED[comparator], right, left)
    if left.plain_name and right.literal is not None:
        if right.kind is Kind.NUMBER:
            return terms.compared_to_number(comparator, left.plain_name, right.literal)
        if right.kind is Kind.TEXT:
            return terms.compared_to_text(comparator, left.plain_name, right.literal)
    return terms.compared(comparator, left.evaluate, right.evaluate)


def _condition(evaluate: terms.Condition, *parts: Term) -> Term:
    return Term(Kind.CONDITION, evaluate, parts[0].token, depth=max(part.depth for part in parts))


def _negated(term: Term) -> Term:
    """Return the negation of a condition whose NOT is inside it, such as NOT IN; this does not nest."""
    return Term(Kind.CONDITION, terms.negated(term.evaluate), term.token, depth=term.depth)


def _calculated(first: Term, steps: list[tuple[Token, Term]], depth: int) -> Term:
    operands = [(str(sign), _numeric(term)) for sign, term in steps]
    evaluate = terms.calculated(_numeric(first), operands)
    if all(term.literal is not None for term in (first, *(term for _, term in steps))):
        literal = evaluate(_no_field)
        return Term(Kind.NUMBER, terms.constant(literal), first.token, depth=depth, literal=literal)
    return Term(Kind.NUMBER, evaluate, first.token, depth=depth)


def _no_field(name: str) -> Any:
    raise AssertionError(name)


def _literal(kind: Kind, value: Any, token: Token) -> Term:
    return Term(kind, terms.constant(value), token, literal=value)


def _number(token: Token, read: Callable[[str], int | float]) -> Term:
    try:
        number = terms.number_in_range(read(token.replace("_", "").lower()))
    except (ValueError, OverflowError) as failure:
        raise _refused(token, "not a number in Java's syntax") from failure
    if number is None:
        raise _refused(token, "the number is too large")
    return _literal(Kind.NUMBER, number, token)


def _integer(text: str) -> int:
    digits = text.rstrip("l")
    is_octal = re.fullmatch("0[0-9]+", digits) is not None
    return int(digits, 8) if is_octal else int(digits, 0)


def _float(text: str) -> float:
    if text.startswith("0x"):
        return float.fromhex(text.rstrip("fd"))
    return float(text.rstrip("fd"))


def _text(token: Token) -> str:
    return token[1:-1].replace("''", "'")


def _refused(token: Token, reason: str) -> SelectorError:
    return SelectorError(reason, position=token.start_pos or 0, token=str(token))


_EQUALITIES: Final = frozenset(("=", "<>"))
_MIRRORED: Final = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
