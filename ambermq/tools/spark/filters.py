"""Narrow the selection of a read by Spark's filters. Pure.

Rule: the selection keeps every event that may pass. Filters are conjuncts of column, operator and literal. Others are
ignored, since Spark applies all filters again.
"""

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    LessThan,
    LessThanOrEqual,
)

from ambermq.tools.dataset.arrow_table import EVERYTHING, Selection

__all__ = ["selection_of"]

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_RANGES: Final = {"offset": ("first", "end"), "timestamp": ("begin_us", "end_us")}
_SETS: Final = {"queue": "queues", "type": "types"}


def selection_of(filters: Iterable[Filter], selection: Selection = EVERYTHING) -> Selection:
    """Return a selection narrowed by all filters."""
    for one in filters:
        column: tuple[str, ...] = getattr(one, "attribute", ())
        name = ".".join(column)
        if name in _RANGES:
            selection = _narrowed(selection, one, *_RANGES[name])
        elif name in _SETS and (values := _values(one)) is not None:
            known = getattr(selection, _SETS[name])
            narrowed: dict[str, Any] = {_SETS[name]: values if known is None else known & values}
            selection = replace(selection, **narrowed)
    return selection


def _values(one: Filter) -> frozenset[str] | None:
    match one:
        case EqualTo(value=value) | EqualNullSafe(value=value):
            return frozenset({value}) if isinstance(value, str) else None
        case In(value=values):
            return frozenset(values) if all(isinstance(value, str) for value in values) else None
    return None


def _narrowed(selection: Selection, one: Filter, low: str, high: str) -> Selection:
    """Return the selection within the bounds of a filter; a range is [low, high)."""
    value = _number(getattr(one, "value", None))
    if value is None:
        return selection
    first, end = getattr(selection, low), getattr(selection, high)
    match one:
        case EqualTo() | EqualNullSafe():
            first, end = max(first, value), min(end, value + 1)
        case GreaterThan():
            first = max(first, value + 1)
        case GreaterThanOrEqual():
            first = max(first, value)
        case LessThan():
            end = min(end, value)
        case LessThanOrEqual():
            end = min(end, value + 1)
    return replace(selection, **{low: first, high: end})


def _number(value: Any) -> int | None:
    if isinstance(value, datetime):
        moment = value if value.tzinfo else value.replace(tzinfo=UTC)
        return (moment - _EPOCH) // timedelta(microseconds=1)
    return value if isinstance(value, int) and not isinstance(value, bool) else None
