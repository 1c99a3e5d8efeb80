"""Arguments, destinations and fields that meet often: few names, few words, values that are nearly equal."""

import math
from typing import Any

from hypothesis import strategies as st

from ambermq.engine.model.attachment import Argument, Condition
from ambermq.engine.model.muxer import MuxerKind
from ambermq.protocol.amqp10.types.values import Char, Decimal32, Float, Symbol, Timestamp, UInt
from tests.engine.routing.naive import Given

__all__ = ["PLAIN_VALUES", "SEPARATORS", "TYPED_VALUES", "arguments", "fields", "texts"]

SEPARATORS = (".", "/", "::", "é", "aba")

_NAMES = ("a", "b", "properties.subject")
_SELECTORS = ("a = 1", "a IS NULL", "b LIKE 'x%'", "a = 'x' OR b > 2", "NOT (a = 1)")
PLAIN_VALUES: tuple[Any, ...] = (
    *(True, False, 0, 1, 1.0, 0.0, -0.0, 1.5, math.nan, 2**53, 2.0**53, 2**53 + 1, None, "", "1", "x", "#"),
    *(b"", b"x", b"\0\0\0\1"),
)
"""What a condition can hold."""

TYPED_VALUES: tuple[Any, ...] = (
    *(Symbol("x"), Char("x"), UInt(1), Float(1.5), Timestamp(0), Decimal32(b"\0\0\0\1"), float("nan")),
    *([], {}, ["x"], {"x": 1}),
)
"""What a message can hold besides."""


def texts(separator: str) -> st.SearchStrategy[str]:
    """Destinations: empty words, separators at both ends, and what would be wild in a pattern."""
    words = st.sampled_from(("", "a", "b", "c", ":", "ab", "*", "#"))
    return st.lists(words, min_size=1, max_size=6).map(separator.join)


def _patterns(separator: str) -> st.SearchStrategy[str]:
    words = st.sampled_from(("", "a", "b", "c", ":", "ab", "*", "*", "#", "#"))
    return st.lists(words, min_size=1, max_size=5).map(separator.join)


def _conditions(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Argument]:
    present = st.builds(Condition, st.sampled_from(_NAMES))
    valued = st.builds(Condition, st.sampled_from(_NAMES), st.just(value=True), values)
    return st.lists(present | valued | valued, min_size=1, max_size=4).map(tuple)


def arguments(kind: MuxerKind, separator: str) -> st.SearchStrategy[Argument]:
    """What an attachment of a class may say, and values that fit no pattern."""
    match kind:
        case MuxerKind.SIMPLE | MuxerKind.LOSSY:
            return st.none()
        case MuxerKind.DESTINATION:
            return texts(separator)
        case MuxerKind.WILD_DESTINATION:
            return _patterns(separator)
        case MuxerKind.SELECTOR:
            return st.sampled_from(_SELECTORS)
        case MuxerKind.PROPERTY:
            return _conditions(st.sampled_from(PLAIN_VALUES))
        case MuxerKind.WILD_PROPERTY:
            return _conditions(_patterns(separator) | st.sampled_from((1, None, b"a")))


def fields(separator: str) -> st.SearchStrategy[Given]:
    """Messages that have some of the names."""
    values = st.sampled_from(PLAIN_VALUES + TYPED_VALUES) | texts(separator) | texts(separator).map(Symbol)
    return st.dictionaries(st.sampled_from((*_NAMES, "other")), values, max_size=4).map(Given)
