"""What a selector is compiled to: closures over a message's fields, with the logic of three values (JMS 2.0, 3.8.1).

    a value       number, text, boolean, None for NULL, or something that JMS has no type for
    a condition   True, False, None for unknown

Rule 1: NULL makes a comparison unknown, and so does arithmetic with it. Values of unlike types compare false, whatever
the operator; so do values without a type of JMS, and texts and booleans by anything but = and <>.
Rule 2: nothing raises: arithmetic that has no result (by zero, out of range, on what is no number) is NULL.
Rule 3: integers divide to integers, towards zero, and lie between -2**63 and 2**64 - 1, where AMQP's do.
"""

import operator
from collections.abc import Callable
from math import isfinite
from typing import Any, Final

from ambermq.engine.selectors.fields import ABSENT

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
    """Make the value that is the same for every message."""
    return lambda _get: value


def field(name: str) -> Value:
    """Make the value of a field as it is."""

    def read(get: Get) -> Any:
        value = get(name)
        return None if value is ABSENT else value

    return read


def shown_field(name: str, show: Callable[[Any], Any]) -> Value:
    """Make the value of a field as JMS shows it."""

    def read(get: Get) -> Any:
        value = get(name)
        return show(None if value is ABSENT else value)

    return read


def calculated(first: Value, steps: list[tuple[str, Value]]) -> Value:
    """Make the result of `+ - * /`, each applied to what came before and its operand."""
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
    """Return a number itself, None where it is too large, or none."""
    if isinstance(number, int):
        return number if _INTEGER_MIN <= number <= _INTEGER_MAX else None
    return number if isfinite(number) else None


def truth(value: Value) -> Condition:
    """Make the condition that a boolean is; what is not a boolean is unknown."""

    def test(get: Get) -> bool | None:
        found = value(get)
        return found if found is True or found is False else None

    return test


def compared(comparator: str, left: Value, right: Value) -> Condition:
    """Make the comparison of any two values."""
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
    """Make the comparison of a field as it is with a number: what `compared` does, at half the cost."""
    test_alike = _TESTS[comparator]

    def test(get: Get) -> bool | None:
        value = get(name)
        if isinstance(value, _NUMBERS) and value is not True and value is not False:
            return test_alike(value, number)
        return None if value is None or value is ABSENT else False

    return test


def compared_to_text(comparator: str, name: str, text: str) -> Condition:
    """Make the comparison of a field as it is with a text, by = or <>; as above."""
    is_equal = comparator == "="

    def test(get: Get) -> bool | None:
        value = get(name)
        if isinstance(value, str):
            return (value == text) is is_equal
        return None if value is None or value is ABSENT else False

    return test


def between(value: Value, low: Value, high: Value) -> Condition:
    """Make BETWEEN: value >= low AND value <= high."""
    return all_of([compared(">=", value, low), compared("<=", value, high)])


def not_between(value: Value, low: Value, high: Value) -> Condition:
    """Make NOT BETWEEN: value < low OR value > high."""
    return any_of([compared("<", value, low), compared(">", value, high)])


def one_of(value: Value, texts: frozenset[str]) -> Condition:
    """Make IN: equal to one of the texts."""

    def test(get: Get) -> bool | None:
        found = value(get)
        return None if found is None else isinstance(found, str) and found in texts

    return test


def like(value: Value, matches: Callable[[str], bool | None]) -> Condition:
    """Make LIKE, by the function of a compiled pattern."""

    def test(get: Get) -> bool | None:
        found = value(get)
        if isinstance(found, str):
            return matches(found)
        return None if found is None else False

    return test


def null(value: Value) -> Condition:
    """Make IS NULL, which is never unknown."""
    return lambda get: value(get) is None


def negated(condition: Condition) -> Condition:
    """Make NOT: the unknown stays unknown."""

    def test(get: Get) -> bool | None:
        answer = condition(get)
        return None if answer is None else not answer

    return test


def all_of(conditions: list[Condition]) -> Condition:
    """Make AND: false where one is, else unknown where one is; what comes behind a false one is not asked."""

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
    """Make OR: true where one is, else unknown where one is; what comes behind a true one is not asked."""

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
    """Say whether both are texts, or both booleans."""
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
