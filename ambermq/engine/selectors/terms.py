"""The closures of a compiled selector: functions of a message's fields with three-valued logic (JMS 2.0, 3.8.1).

    a value       number, text, boolean, None for NULL, or a value that JMS has no type for
    a condition   True, False, None for unknown

Rule 1: a comparison with NULL is unknown, and arithmetic with NULL is NULL. A comparison of values of different types
is false with every operator. So is one of values without a JMS type, and an ordering of texts or booleans.
Rule 2: nothing raises, except that a term that reads a long text may pause (pausable_fields.py). Arithmetic without a
result (division by zero, out of range, not a number) is NULL.
Rule 3: the division of integers rounds towards zero. Integers are between -2**63 and 2**64 - 1, as in AMQP.
"""

import operator
from collections.abc import Callable
from math import isfinite
from typing import Any, Final

from ambermq.engine.selectors.fields import ABSENT
from ambermq.engine.selectors.like import Like
from ambermq.engine.selectors.pausable_fields import LONG_BYTES, pausable_of

__all__ = [
    "Condition",
    "Get",
    "Value",
    "all_of",
    "any_of",
    "between",
    "calculated",
    "compared",
    "compared_to_number",
    "compared_to_text",
    "constant",
    "field",
    "like",
    "negated",
    "not_between",
    "null",
    "number_in_range",
    "one_of",
    "shown_field",
    "truth",
]

Get = Callable[[str], Any]
"""`Fields.get` of one message."""
Value = Callable[[Get], Any]
Condition = Callable[[Get], bool | None]

_NUMBERS: Final = (int, float)
_INTEGER_MIN: Final = -(2**63)
_INTEGER_MAX: Final = 2**64 - 1
_EQUALITIES: Final = frozenset(("=", "<>"))
_TESTS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def constant(value: Any) -> Value:
    """Return a value that is the same for every message."""
    return lambda _get: value


def field(name: str) -> Value:
    """Return the value of a field, unchanged."""

    def read(get: Get) -> Any:
        value = get(name)
        return None if value is ABSENT else value

    return read


def shown_field(name: str, show: Callable[[Any], Any]) -> Value:
    """Return the value of a field, converted as JMS shows it."""

    def read(get: Get) -> Any:
        value = get(name)
        if isinstance(value, bytes) and len(value) > LONG_BYTES and (pausable := pausable_of(get)) is not None:
            return pausable.shown(name, show, value)
        return show(None if value is ABSENT else value)

    return read


def calculated(first: Value, steps: list[tuple[str, Value]]) -> Value:
    """Return the result of a chain of `+ - * /`, from left to right."""
    bound = [(_OPERATIONS[sign], operand) for sign, operand in steps]

    def calculate(get: Get) -> Any:
        result = first(get)
        for operate, operand in bound:
            right = operand(get)
            if not (_is_number(result) and _is_number(right)):
                return None
            try:
                result = number_in_range(operate(result, right))
            except ArithmeticError:
                return None
        return result

    return calculate


def number_in_range(number: float) -> int | float | None:
    """Return the number, or None if it is out of range or not finite."""
    if isinstance(number, int):
        return number if _INTEGER_MIN <= number <= _INTEGER_MAX else None
    return number if isfinite(number) else None


def truth(value: Value) -> Condition:
    """Return the condition of a boolean value; a value that is not a boolean is unknown."""

    def test(get: Get) -> bool | None:
        found = value(get)
        return found if found is True or found is False else None

    return test


def compared(comparator: str, left: Value, right: Value) -> Condition:
    """Return the comparison of any two values."""
    test_alike = _TESTS[comparator]
    is_equality = comparator in _EQUALITIES

    def test(get: Get) -> bool | None:
        first, second = left(get), right(get)
        if first is None or second is None:
            return None
        if _is_number(first):
            return _is_number(second) and test_alike(first, second)
        return is_equality and _are_alike(first, second) and test_alike(first, second)

    return test


def compared_to_number(comparator: str, name: str, number: float) -> Condition:
    """Return the comparison of an unconverted field with a number: the same as `compared`, at half the cost."""
    test_alike = _TESTS[comparator]

    def test(get: Get) -> bool | None:
        value = get(name)
        if isinstance(value, _NUMBERS) and value is not True and value is not False:
            return test_alike(value, number)
        return None if value is None or value is ABSENT else False

    return test


def compared_to_text(comparator: str, name: str, text: str) -> Condition:
    """Return the comparison of an unconverted field with a text by = or <>: the same as `compared`, but faster."""
    is_equal = comparator == "="

    def test(get: Get) -> bool | None:
        value = get(name)
        if isinstance(value, str):
            return (value == text) is is_equal
        return None if value is None or value is ABSENT else False

    return test


def between(value: Value, low: Value, high: Value) -> Condition:
    """Return BETWEEN: value >= low AND value <= high."""
    return all_of([compared(">=", value, low), compared("<=", value, high)])


def not_between(value: Value, low: Value, high: Value) -> Condition:
    """Return NOT BETWEEN: value < low OR value > high."""
    return any_of([compared("<", value, low), compared(">", value, high)])


def one_of(value: Value, texts: frozenset[str]) -> Condition:
    """Return IN: equal to one of the texts."""

    def test(get: Get) -> bool | None:
        found = value(get)
        return None if found is None else isinstance(found, str) and found in texts

    return test


def like(value: Value, matches: Like) -> Condition:
    """Return LIKE; `matches` is a compiled pattern."""

    def test(get: Get) -> bool | None:
        found = value(get)
        if isinstance(found, str):
            if len(found) > LONG_BYTES and (pausable := pausable_of(get)) is not None:
                return pausable.like(matches, found)
            return matches(found)
        return None if found is None else False

    return test


def null(value: Value) -> Condition:
    """Return IS NULL, which is never unknown."""
    return lambda get: value(get) is None


def negated(condition: Condition) -> Condition:
    """Return NOT: unknown stays unknown."""

    def test(get: Get) -> bool | None:
        answer = condition(get)
        return None if answer is None else not answer

    return test


def all_of(conditions: list[Condition]) -> Condition:
    """Return AND: false if one is false, else unknown if one is unknown. It stops at the first false one."""

    def test(get: Get) -> bool | None:
        answer: bool | None = True
        for condition in conditions:
            found = condition(get)
            if found is False:
                return False
            if found is None:
                answer = None
        return answer

    return test


def any_of(conditions: list[Condition]) -> Condition:
    """Return OR: true if one is true, else unknown if one is unknown. It stops at the first true one."""

    def test(get: Get) -> bool | None:
        answer: bool | None = False
        for condition in conditions:
            found = condition(get)
            if found is True:
                return True
            if found is None:
                answer = None
        return answer

    return test


def _is_number(value: Any) -> bool:
    return isinstance(value, _NUMBERS) and value is not True and value is not False


def _are_alike(first: Any, second: Any) -> bool:
    """Return whether both are texts, or both booleans."""
    if isinstance(first, str):
        return isinstance(second, str)
    return isinstance(first, bool) and isinstance(second, bool)


def _divided(first: float, second: float) -> int | float:
    if isinstance(first, int) and isinstance(second, int):
        quotient = abs(first) // abs(second)
        return quotient if (first < 0) is (second < 0) else -quotient
    return first / second


_OPERATIONS: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": _divided,
}
