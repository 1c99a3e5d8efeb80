"""Conditions as people write them."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ambermq.engine.errors import EngineError
from ambermq.engine.model.attachment import Condition
from ambermq.engine.model.condition_text import condition_text, parse_condition

_VALUES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
_CONDITIONS = st.builds(Condition, st.text(min_size=1)) | st.builds(
    Condition, st.text(min_size=1), st.just(True), _VALUES
)


@given(_CONDITIONS)
@example(Condition("x", True, '"'))
@example(Condition("x", True, "NaN"))
@example(Condition("x", True, " 1"))
@example(Condition('"', True, ""))
@example(Condition("x", True, -0.0))
def test_a_text_is_read_as_it_was_written(condition: Condition) -> None:
    """Name, value and its type."""
    again = parse_condition(condition_text(condition))
    assert (again, type(again.value), repr(again.value)) == (condition, type(condition.value), repr(condition.value))


@pytest.mark.parametrize(
    ("text", "condition"),
    [
        ("urgent", Condition("urgent")),
        ("size=3", Condition("size", True, 3)),
        ("size=3.5", Condition("size", True, 3.5)),
        ("paid=true", Condition("paid", True, True)),
        ("x=null", Condition("x", True, None)),
        ("region=eu", Condition("region", True, "eu")),
        ("path=", Condition("path", True, "")),
        ('code="3"', Condition("code", True, "3")),
        ("rule=a=b", Condition("rule", True, "a=b")),
        ('"a=b"=3', Condition("a=b", True, 3)),
        ("list=[1]", Condition("list", True, "[1]")),
        ("x=NaN", Condition("x", True, "NaN")),
    ],
)
def test_texts(text: str, condition: Condition) -> None:
    """What each text stands for."""
    found = parse_condition(text)
    assert (found, type(found.value)) == (condition, type(condition.value))


@pytest.mark.parametrize(
    ("text", "words"),
    [("", "names no property"), ("=1", "names no property"), ('"a', "has no closing quote"), ('"a"b', "found 'b'")],
)
def test_what_is_no_condition(text: str, words: str) -> None:
    """One message that says why."""
    with pytest.raises(EngineError, match=words):
        parse_condition(text)
