"""Selectors: JMS's syntax and its logic of three values, whatever the text and the message."""

from collections.abc import Callable
from typing import Any
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ambermq.engine.errors import EngineError
from ambermq.engine.selectors import selector as selector_module
from ambermq.engine.selectors.fields import ABSENT
from ambermq.engine.selectors.selector import Selector, SelectorError, parse_selector
from tests.engine.routing.selector_trees import (
    DictFields,
    Tree,
    calculations,
    conditions,
    field_tables,
    meaning,
    number_tables,
    scalars,
    value_of,
    written,
)

FIELDS = DictFields(
    colour="red", weight=2500, ratio=0.5, yes=True, no=False, nothing=None, blob=b"red", big=2**64 - 1, least=-(2**63)
)


def _answer(text: str, fields: DictFields = FIELDS) -> bool | None:
    """True, False or None, told by the selector and its negation."""
    is_true = parse_selector(text).matches(fields)
    is_false = parse_selector(f"NOT ({text})", bytes_max=5000).matches(fields)
    assert not (is_true and is_false)
    return True if is_true else False if is_false else None


@settings(max_examples=200, deadline=None)
@given(conditions, field_tables, st.sampled_from((str.upper, str.lower, str.title)), st.sampled_from(" \t\n\f\r"))
def test_means_what_the_reference_says(
    tree: Tree, fields: DictFields, keyword: Callable[[str], str], space: str
) -> None:
    """Any condition is true, false and unknown where an independent evaluator says so."""
    text = written(tree, lambda word: keyword(word).replace(" ", space))
    assert _answer(text, fields) is meaning(tree, fields), text


@settings(max_examples=200, deadline=None)
@given(calculations, number_tables)
def test_arithmetic(tree: Tree, fields: DictFields) -> None:
    """A calculation equals what the reference comes to, and compares unknown where that has no result."""
    expected = value_of(tree, fields)
    fields["result"] = 0 if expected is None else expected
    text = written(tree, level=4)
    assert _answer(f"{text} = result", fields) is (None if expected is None else True), text


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(("=", "<>", "<", "<=", ">", ">=")), scalars, scalars)
def test_comparison(comparator: str, left: Any, right: Any) -> None:
    """Two values compare alike wherever they stand: in fields, or written on either side."""
    fields = DictFields(a=left, b=right)
    expected = meaning(Tree("compared", (comparator, Tree("field", ("a",)), Tree("field", ("b",)))), fields)
    assert _answer(f"a {comparator} b", fields) is expected
    if _is_written(left, comparator):
        assert _answer(f"{_literal(left)} {comparator} b", fields) is expected
    if _is_written(right, comparator):
        assert _answer(f"a {comparator} {_literal(right)}", fields) is expected


def _is_written(value: Any, comparator: str) -> bool:
    """Whether a literal can be compared so, or at all."""
    return type(value) in (int, float) or (comparator in ("=", "<>") and isinstance(value, str | bool))


def _literal(value: Any) -> str:
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return str(value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("colour = 'red' AND weight > 2000", True),
        ("colour = 'it''s'", False),
        ("weight / 1000 = 2", True),
        ("-weight / 1000 = -2", True),
        ("weight / 1000.0 = 2.5", True),
        ("2 + 3 * 4 = 14 AND (2 + 3) * 4 = 20 AND 7 - 2 - 1 = 4", True),
        ("0x1F = 31 AND 017 = 15 AND 0b101 = 5 AND 12L = 12 AND 1_000 = 1000", True),
        ("7. = 7 AND .5 = 0.5 AND 7E3 = 7000 AND -57.9e2 = -5790 AND 1.5f = 1.5 AND 0x1.8p3 = 12 AND 2d = 2", True),
        ("yes", True),
        ("yes = TRUE AND no = false AND NOT no", True),
        ("TRUE OR nothing", True),
        ("FALSE OR nothing", None),
        ("colour", None),
        ("colour < weight", False),
        ("colour < colour", False),
        ("yes > no", False),
        ("yes = 1", False),
        ("yes <> 1", False),
        ("colour <> 5", False),
        ("colour <> 'blue' AND 'blue' <> colour AND NOT colour <> 'red'", True),
        ("blob = 'red' OR blob <> 'red' OR blob = blob", False),
        ("missing = 1", None),
        ("missing IS NULL AND nothing IS NULL AND colour IS NOT NULL AND blob IS NOT NULL", True),
        ("weight BETWEEN 2500 AND 2500 AND weight NOT BETWEEN 0 AND 1", True),
        ("colour NOT BETWEEN 0 AND 1", False),
        ("colour IN ('blue', 'red') AND colour NOT IN ('blue')", True),
        ("missing NOT IN ('blue')", None),
        ("weight NOT IN ('2500') AND weight NOT LIKE '2%'", True),
        ("colour LIKE 'r_d' AND colour LIKE 're%' AND colour NOT LIKE 'r'", True),
        ("missing NOT LIKE 'r'", None),
        ("weight / 0 = 1", None),
        ("ratio / 0.0 = 1", None),
        ("big + 1 > 0", None),
        ("least - 1 < 0", None),
        ("least = -9223372036854775808", True),
        ("1e308 * 10 > 0", None),
        ("colour + 1 = 2", None),
        ("5 < weight AND 'red' = colour AND 2500 >= weight", True),
        ('"colour" = \'red\' AND "it""s" IS NULL', True),
        ("Colour IS NULL", True),
        ("android IS NULL AND orb IS NULL AND nothing IS NULL AND is.like IS NULL", True),
        ("\u00e9t\u00e9 IS NULL AND $_1 IS NULL", True),
    ],
)
def test_examples(text: str, expected: bool | None) -> None:
    """Operators, literals and names are those of JMS 2.0, section 3.8.1."""
    assert _answer(text) is expected


@pytest.mark.parametrize(
    ("text", "position", "token", "words"),
    [
        ("", 0, "", "expected a name"),
        ("  ", 2, "", "expected a name"),
        ("a = ", 4, "", "expected a name"),
        ("a = AND", 4, "AND", "expected a name"),
        ("a == 1", 3, "=", "expected a name"),
        ("a = 1 b", 6, "b", "AND, OR, the end"),
        ("(a = 1", 6, "", "expected )"),
        ("a = 1)", 5, ")", "the end"),
        ("a = 'b", 4, "'b", "closing quote"),
        ('"a = 1', 0, '"a = 1', "closing quote"),
        ('"" = 1', 0, '""', "a name between the quotes"),
        ("a ? b", 2, "?", "not allowed outside quotes"),
        ("a. = 1", 1, ".", "not allowed outside quotes"),
        ("1", 0, "1", "expected a condition, found a number"),
        ("a = 1 OR 'x'", 9, "'x'", "expected a condition, found a string"),
        ("NOT 1", 4, "1", "expected a condition"),
        ("(a = 1) = TRUE", 0, "(", "expected a value, found a condition"),
        ("a > 'b'", 4, "'b'", "expected a number or a name, found a string"),
        ("TRUE < a", 0, "TRUE", "expected a number or a name, found a boolean"),
        ("a + 'b' = 1", 4, "'b'", "expected a number or a name, found a string"),
        ("a BETWEEN 'b' AND 1", 10, "'b'", "expected a number or a name, found a string"),
        ("a IN (1)", 6, "1", "expected a string"),
        ("a IN ()", 6, ")", "expected a string"),
        ("'a' IN ('a')", 0, "'a'", "expected a name"),
        ("1 IS NULL", 0, "1", "expected a name"),
        ("a LIKE b", 7, "b", "expected a string"),
        ("a LIKE 'b' ESCAPE 'xy'", 18, "'xy'", "one character"),
        ("a LIKE 'b' ESCAPE ''", 18, "''", "one character"),
        ("a LIKE 'b!' ESCAPE '!'", 7, "'b!'", "ends with its escape character"),
        ("a = NULL", 4, "NULL", "expected a name"),
        ("a = 08", 4, "08", "not a number"),
        ("a = 0x_", 4, "0x_", "not a number"),
        ("a = 18446744073709551616", 4, "18446744073709551616", "too large"),
        ("a = " + "9" * 4090, 4, "9" * 4090, "too large"),
        ("a = 1e999", 4, "1e999", "too large"),
        ("a = 0x1p99999", 4, "0x1p99999", "not a number"),
        ("amqp.nonsense = 1", 0, "amqp.nonsense", "no message has a field"),
        ("header.to = 1", 0, "header.to", "no message has a field"),
    ],
)
def test_errors_name_position_and_token(text: str, position: int, token: str, words: str) -> None:
    """An invalid selector is refused, and the message has the position and the token."""
    with pytest.raises(SelectorError) as failure:
        parse_selector(text)
    assert (position, token) == (failure.value.position, failure.value.token)
    assert words in failure.value.message
    assert f"character {position}" in str(failure.value)
    assert isinstance(failure.value, EngineError)


_WORDS = (
    "a b.c 'x' '%' 1 2.5 0x1f TRUE false NULL ( ) , = <> <= + - * / NOT AND OR BETWEEN IN LIKE ESCAPE IS '!' \"q\" ' ?"
)


@settings(max_examples=300, deadline=None)
@given(
    st.text(max_size=40)
    | st.text("a1'\"(). \t-+=<>%_eExX\ud800", max_size=30)
    | st.lists(st.sampled_from(_WORDS.split(" ")), max_size=15).map(" ".join),
    field_tables,
)
def test_junk(text: str, fields: DictFields) -> None:
    """Any text is a selector, which answers any message, or a SelectorError whose token stands at its position."""
    try:
        selector = parse_selector(text)
    except SelectorError as failure:
        error = failure
    else:
        selector.matches(fields)
        return
    assert text[error.position :].startswith(error.token)
    assert bool(error.token) == (error.position < len(text))


@pytest.mark.parametrize(
    ("text", "count", "last"),
    [
        ("a=1 OR b<>2", 7, "2"),
        ("name LIKE '%x y%' AND \"quoted name\" IS NULL", 7, "NULL"),
        ("((a + 1.5) >= b.c)", 9, ")"),
    ],
)
def test_tokens_are_bounded(text: str, count: int, last: str) -> None:
    """One token more than the limit is refused, and the error names it; a short text is not counted."""
    parse_selector(text, tokens_max=count)
    with pytest.raises(SelectorError, match=f"more than {count - 1} tokens") as failure:
        parse_selector(text, tokens_max=count - 1)
    assert failure.value.token == last
    assert text[failure.value.position :].startswith(last)


@pytest.mark.parametrize(
    ("opening", "core", "closing"),
    [("(", "yes", ")"), ("NOT ", "yes", ""), ("-", "1 = 1", ""), ("(a + ", "1", ")"), ("NOT (a = 1 OR ", "yes", ")")],
)
def test_nesting_is_bounded(opening: str, core: str, closing: str) -> None:
    """Parentheses, NOT and signs nest as deep as depth_max and no deeper, with as long a text as may be."""
    per_level = sum(opening.count(word) for word in ("(", "NOT", "-"))

    def nested(levels: int) -> str:
        text = opening * levels + core + closing * levels
        return text + " = 1" if opening == "(a + " else text

    deepest = 64 // per_level
    parse_selector(nested(deepest)).matches(FIELDS)
    for levels in (deepest + 1, 4000 // len(opening + closing)):
        with pytest.raises(SelectorError, match="nested deeper than 64"):
            parse_selector(nested(levels))
    with pytest.raises(SelectorError, match="nested deeper than 3"):
        parse_selector(nested(4), depth_max=3)


@pytest.mark.parametrize(
    ("first", "more", "last", "expected"),
    [
        ("no", " OR no", " OR yes", True),
        ("yes", " AND yes", " AND no", False),
        ("no = yes", " OR no = yes", " OR yes", True),
        ("0 = weight", " - 1", " + 9", False),
        ("0 = weight", "*1", "*0", True),
        ("colour IN ('x'", ",'x'", ",'red')", True),
    ],
)
def test_chains_do_not_nest(first: str, more: str, last: str, expected: bool) -> None:
    """A chain may be as long as the text."""
    count = (4096 - len(first) - len(last)) // len(more)
    assert _answer(first + more * (count - 2) + last) is expected


def test_length_is_bounded_in_bytes() -> None:
    """A text of bytes_max bytes in UTF-8 is compiled; of one longer, the first character too many is named."""
    text = "a = '" + "\u00e9" * 2045 + "'"
    assert len(text.encode()) == 4096
    parse_selector(text)
    with pytest.raises(SelectorError, match="4097 bytes, at most 4096") as failure:
        parse_selector(text + " ")
    assert (failure.value.position, failure.value.token) == (len(text), " ")
    with pytest.raises(SelectorError, match="at most 8"):
        parse_selector("a = '\u00e9\u00e9'", bytes_max=8)


@pytest.mark.parametrize("pattern", ["%a" * 1500 + "b", "%_a_a" * 500 + "%b", "%" * 3000 + "b", "_%" * 1500 + "b"])
def test_no_pattern_goes_back(pattern: str) -> None:
    """A pattern that would make a matcher go back without end is answered, and false."""
    text = f"name LIKE '{pattern}'"
    assert not parse_selector(text).matches(DictFields(name="a" * 8000))


def test_selector_tells_text_and_names() -> None:
    """A selector has its text, and the names of Fields that it asks for, and asks for no others."""
    text = "colour = 'red' AND JMSPriority > 4 OR \"annotations.x-key\" IS NULL AND amqp.message_id LIKE 'a%'"
    asked: list[str] = []

    class Asked(DictFields):
        def get(self, name: str, default: Any = ABSENT) -> Any:
            asked.append(name)
            return default

    selector = parse_selector(text)
    assert isinstance(selector, Selector)
    assert selector.text == text
    assert selector.names == {"colour", "header.priority", "annotations.x-key", "properties.message-id"}
    assert not selector.matches(Asked())
    assert selector.names == set(asked)


def test_the_same_text_is_parsed_once() -> None:
    """The checks of an attach and the selector itself are one parse; a failure is told each time."""
    text = "a = 1 AND parsed = 'once'"
    with mock.patch("ambermq.engine.selectors.selector._parse", wraps=selector_module._parse) as parse:
        first = parse_selector(text)
        assert parse_selector(text, bytes_max=100) is first
        assert parse.call_count == 1
        for _ in range(2):
            with pytest.raises(SelectorError):
                parse_selector("parsed = = 1")
            with pytest.raises(SelectorError, match="at most 3"):
                parse_selector(text, bytes_max=3)
