"""Random selectors as trees, their text, and what they mean, told without the code that is tested."""

import operator
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, NamedTuple

from hypothesis import strategies as st

from ambermq.engine.selectors.fields import ABSENT

__all__ = [
    "DictFields",
    "Tree",
    "calculations",
    "conditions",
    "field_tables",
    "like_reference",
    "meaning",
    "number_tables",
    "patterns",
    "scalars",
    "value_of",
    "written",
]


class DictFields(dict[str, Any]):
    """Fields out of a dict."""

    def get(self, name: str, default: Any = ABSENT) -> Any:
        return super().get(name, default)


class Tree(NamedTuple):
    """An operator with its operands, which are trees, texts and numbers."""

    kind: str
    operands: tuple[Any, ...]


NAMES = ("a", "b.c", "$_d", "e-f")
texts = st.sampled_from(("", "a", "b", "ab")) | st.text("ab'%_!\u00e9", max_size=4)
patterns = st.tuples(st.text("ab%_!.*", max_size=7), st.sampled_from(("", "!"))).filter(
    lambda drawn: not drawn[1] or (len(drawn[0]) - len(drawn[0].rstrip("!"))) % 2 == 0
)
"""A pattern and its escape character, "" for none; the pattern does not end in it."""
_integers = st.integers(0, 3) | st.sampled_from((7, 2**31, 2**63 - 1, 2**63, 2**64 - 1))
_floats = st.sampled_from((0.0, 0.5, 1.0, 2.0, 1e16, 1e-7, 1e308))
_numerals = _integers | _floats
_numbers = _numerals | _integers.filter(lambda number: number <= 2**63).map(operator.neg) | _floats.map(operator.neg)
scalars = st.one_of(
    texts,
    _numbers,
    st.booleans(),
    st.sampled_from((ABSENT, None, b"a")),
)
"""What a field may be."""
field_tables = st.fixed_dictionaries(dict.fromkeys(NAMES, scalars)).map(DictFields)
number_tables = st.fixed_dictionaries(dict.fromkeys(NAMES, _numbers)).map(DictFields)


def _trees(kind: str, *operands: Any) -> st.SearchStrategy[Tree]:
    parts = [part if isinstance(part, st.SearchStrategy) else st.just(part) for part in operands]
    return st.tuples(*parts).map(lambda drawn: Tree(kind, drawn))


_fields = _trees("field", st.sampled_from(NAMES))
calculations = st.recursive(
    _trees("number", _numerals) | _fields,
    lambda inner: (
        _trees("sign", st.sampled_from("+-"), inner) | _trees("calculated", st.sampled_from("+-*/"), inner, inner)
    ),
    max_leaves=4,
)
_values = st.one_of(_fields, _trees("text", texts), _trees("boolean", st.booleans()), calculations)
_leaves = st.one_of(
    _trees("compared", st.sampled_from(("=", "<>")), _values, _values),
    _trees("compared", st.sampled_from(("=", "<>")), _fields, _trees("text", texts)),
    _trees("compared", st.sampled_from(("<", "<=", ">", ">=")), calculations, calculations),
    _trees("between", st.booleans(), calculations, calculations, calculations),
    _trees("in", st.booleans(), _fields, st.lists(texts, min_size=1, max_size=3)),
    _trees("like", st.booleans(), _fields, patterns),
    _trees("null", st.booleans(), _fields),
    _fields,
    _trees("boolean", st.booleans()),
)
conditions = _leaves | st.recursive(
    _leaves,
    lambda inner: _trees("not", inner) | _trees("and", inner, inner) | _trees("or", inner, inner),
    max_leaves=8,
)

_LEVELS = {"or": 0, "and": 1, "not": 2, "compared": 3, "between": 3, "in": 3, "like": 3, "null": 3, "sign": 6}


def written(tree: Tree, keyword: Callable[[str], str] = str, level: int = 0) -> str:
    """Write a tree with no more parentheses than it needs; keywords as the function makes them."""
    own = _LEVELS.get(tree.kind, 7)
    if tree.kind == "calculated":
        own = 4 if tree.operands[0] in "+-" else 5
    text = _bare(tree, keyword, own)
    return f"({text})" if own < level else text


def _bare(tree: Tree, keyword: Callable[[str], str], own: int) -> str:
    no = keyword("NOT ")
    match tree:
        case ("or" | "and" as kind, (left, right)):
            return f"{written(left, keyword, own)} {keyword(kind)} {written(right, keyword, own + 1)}"
        case ("not", (inner,)):
            return no + written(inner, keyword, 2)
        case ("compared", (comparator, left, right)):
            return f"{written(left, keyword, 4)}{comparator}{written(right, keyword, 4)}"
        case ("between", (is_not, *parts)):
            value, low, high = (written(part, keyword, 4) for part in parts)
            return f"{value} {no * is_not}{keyword('BETWEEN')} {low} {keyword('AND')} {high}"
        case ("in", (is_not, field, options)):
            listed = ",".join(map(_quoted, options))
            return f"{written(field)} {no * is_not}{keyword('IN')}({listed})"
        case ("like", (is_not, field, (pattern, escape))):
            ending = f" {keyword('ESCAPE')} {_quoted(escape)}" if escape else ""
            return f"{written(field)} {no * is_not}{keyword('LIKE')} {_quoted(pattern)}{ending}"
        case ("null", (is_not, field)):
            return f"{written(field)} {keyword('IS')} {no * is_not}{keyword('NULL')}"
        case ("sign", (sign, inner)):
            return f"{sign} {written(inner, keyword, 6)}"
        case ("calculated", (sign, left, right)):
            return f"{written(left, keyword, own)} {sign} {written(right, keyword, own + 1)}"
        case ("field", (name,)):
            return f'"{name}"' if "-" in name else str(name)
        case ("text", (text,)):
            return _quoted(text)
        case (_, (literal,)):
            return keyword(str(literal)) if isinstance(literal, bool) else repr(literal)
    raise AssertionError(tree)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def meaning(tree: Tree, fields: Mapping[str, Any]) -> bool | None:
    """Return the value of a condition; None is unknown."""
    match tree:
        case ("or", (left, right)):
            return _not(_and(_not(meaning(left, fields)), _not(meaning(right, fields))))
        case ("and", (left, right)):
            return _and(meaning(left, fields), meaning(right, fields))
        case ("not", (inner,)):
            return _not(meaning(inner, fields))
        case ("compared", (comparator, left, right)):
            return _compare(comparator, value_of(left, fields), value_of(right, fields))
        case ("between", (is_not, *parts)):
            value, low, high = (value_of(part, fields) for part in parts)
            if is_not:
                return _not(_and(_not(_compare("<", value, low)), _not(_compare(">", value, high))))
            return _and(_compare(">=", value, low), _compare("<=", value, high))
        case ("in", (is_not, field, options)):
            value = value_of(field, fields)
            return None if value is None else any(value == option for option in options) is not is_not
        case ("like", (is_not, field, (pattern, escape))):
            value = value_of(field, fields)
            if value is None:
                return None
            return (isinstance(value, str) and like_reference(pattern, escape, value)) is not is_not
        case ("null", (is_not, field)):
            return (value_of(field, fields) is None) is not is_not
        case _:
            value = value_of(tree, fields)
            return value if isinstance(value, bool) else None


def like_reference(pattern: str, escape: str, text: str) -> bool:
    """Match by the definition: which beginnings of the text a beginning of the pattern can stand for."""
    ends = {0}
    symbols = iter(pattern)
    for symbol in symbols:
        literal = next(symbols) if symbol == escape else symbol
        if symbol == "%":
            ends = {end for end in range(len(text) + 1) if end >= min(ends, default=len(text) + 1)}
        else:
            is_any = symbol == "_"
            ends = {end + 1 for end in ends if end < len(text) and (is_any or text[end] == literal)}
    return len(text) in ends


def value_of(tree: Tree, fields: Mapping[str, Any]) -> Any:
    """Return a value; None is NULL."""
    match tree:
        case ("field", (name,)):
            return None if fields[name] is ABSENT else fields[name]
        case ("sign", (sign, inner)):
            return _calculate(sign, 0, value_of(inner, fields))
        case ("calculated", (sign, left, right)):
            return _calculate(sign, value_of(left, fields), value_of(right, fields))
        case (_, (literal,)):
            return literal
    raise AssertionError(tree)


def _calculate(sign: str, left: Any, right: Any) -> Any:
    if type(left) not in (int, float) or type(right) not in (int, float):
        return None
    if sign == "/" and right == 0:
        return None
    if type(left) is type(right) is int:
        exact = {"+": left + right, "-": left - right, "*": left * right}
        result = exact[sign] if sign in exact else int(Fraction(left, right))
        return result if -(2**63) <= result < 2**64 else None
    operate = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv}[sign]
    result = operate(float(left), float(right))
    return result if abs(result) < float("inf") else None


def _compare(comparator: str, left: Any, right: Any) -> bool | None:
    if left is None or right is None:
        return None
    kinds = {_kind(left), _kind(right)}
    if len(kinds) > 1 or "other" in kinds or (comparator not in ("=", "<>") and "number" not in kinds):
        return False
    signs = {"=": "==", "<>": "!="}
    return bool(eval(f"left {signs.get(comparator, comparator)} right", {"left": left, "right": right}))


def _kind(value: Any) -> str:
    return {bool: "boolean", int: "number", float: "number", str: "text"}.get(type(value), "other")


def _not(truth: bool | None) -> bool | None:
    return {True: False, False: True, None: None}[truth]


def _and(left: bool | None, right: bool | None) -> bool | None:
    return False if False in (left, right) else None if None in (left, right) else True
