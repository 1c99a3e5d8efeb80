"""The source filters that we apply (messaging, 3.5.8): a moment in the past, a selector, and no-local.

    key         value
    ambermq:at  described by the symbol ambermq:at, or bare
                  any integer: an offset, the moment after the event there
                  timestamp:   a time
    any         described by 0x0000468C00000004, or apache.org:selector-filter:string: a string, a selector of JMS
    any         described by 0x0000468C00000003, or apache.org:no-local-filter:list: any value

Rule 1. Unknown filters are ignored and not echoed: so the peer sees that they are not applied.
Rule 2. A known filter with an invalid value is refused.
Rule 3. A message must match all filters of a set, so each of several selectors.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from ambermq.protocol.amqp10.errors import LinkFault
from ambermq.protocol.amqp10.spec import AmqpCondition
from ambermq.protocol.amqp10.types.values import (
    Byte,
    Described,
    Int,
    Map,
    Short,
    Symbol,
    Timestamp,
    UByte,
    UInt,
    ULong,
    UShort,
)

__all__ = [
    "AT",
    "NO_LOCAL_CODE",
    "SELECTOR_CODE",
    "At",
    "AtOffset",
    "AtTime",
    "Selection",
    "read_at",
    "read_selection",
]

AT: Final = Symbol("ambermq:at")
SELECTOR_CODE: Final = 0x0000468C00000004
NO_LOCAL_CODE: Final = 0x0000468C00000003
_SELECTORS: Final = (SELECTOR_CODE, Symbol("apache.org:selector-filter:string"))
_NO_LOCALS: Final = (NO_LOCAL_CODE, Symbol("apache.org:no-local-filter:list"))
_INTEGERS: Final = (ULong, int, UInt, Int, UShort, Short, UByte, Byte)
_US_PER_MS: Final = 1000
_TIME_MS_MAX: Final = 253_402_300_799_999
"""The end of the year 9999: a later time is the future as well, and no calendar can write it."""


@dataclass(frozen=True, slots=True)
class AtOffset:
    """The moment after the event at an offset."""

    offset: int


@dataclass(frozen=True, slots=True)
class AtTime:
    """A moment by the time of day."""

    time_us: int
    """Microseconds since the epoch of Unix; a timestamp of AMQP has milliseconds."""


At = AtOffset | AtTime


@dataclass(frozen=True, slots=True)
class Selection:
    """The messages that a receiver selects, and the filters that select them."""

    selector: str = ""
    """Empty for all; with several `texts` their conjunction, which is valid only if each of them is."""
    texts: tuple[str, ...] = ()
    """The selectors one by one, without blank ones."""
    selectors: tuple[tuple[Any, Any], ...] = ()
    """The selector filters, as pairs of key and value."""
    no_locals: tuple[tuple[Any, Any], ...] = ()
    """The no-local filters: they exclude messages of the receiver's own container."""


def read_selection(filters: Any) -> Selection:
    """Return the selectors and no-locals of a source's filter set.

    Raises LinkFault (amqp:invalid-field) for a selector that is no string. It does not compile selectors.
    """
    described = [(key, value) for key, value in _pairs(filters) if isinstance(value, Described)]
    selectors = tuple((key, value) for key, value in described if value.descriptor in _SELECTORS)
    for key, value in selectors:
        if not isinstance(value.value, str) or isinstance(value.value, Symbol):
            what = f"the selector under {key!r:.80} is {value.value!r:.80}, expected a string"
            raise LinkFault(AmqpCondition.INVALID_FIELD, what)
    texts = tuple(str(value.value) for _, value in selectors if value.value.strip())
    text = texts[0] if len(texts) == 1 else " AND ".join(f"({text})" for text in texts)
    no_locals = tuple((key, value) for key, value in described if value.descriptor in _NO_LOCALS)
    return Selection(text, texts, selectors, no_locals)


def read_at(filters: Any) -> tuple[At | None, dict[Any, Any] | None]:
    """Return the moment that a source's filter set names, and the set as it is applied; None without a moment.

    Raises LinkFault (amqp:invalid-field) for a value that is neither an offset nor a timestamp.
    """
    described = _value_of(filters)
    if described is None:
        return None, None
    value = described
    if isinstance(described, Described):
        if described.descriptor != AT:
            raise _wrong(f"described by {described.descriptor!r:.80}, expected the symbol {AT}")
        value = described.value
    return _moment(value), {AT: described}


def _value_of(filters: Any) -> Any:
    return next((value for key, value in _pairs(filters) if isinstance(key, str) and key == AT), None)


def _pairs(filters: Any) -> Iterable[tuple[Any, Any]]:
    return filters.pairs if isinstance(filters, Map) else (filters or {}).items()


def _moment(value: Any) -> At:
    # The exact type is compared, since a timestamp and a boolean are integers in Python.
    if type(value) is Timestamp and value >= 0:
        return AtTime(min(value, _TIME_MS_MAX) * _US_PER_MS)
    if type(value) in _INTEGERS and value >= 0:
        return AtOffset(int(value))
    raise _wrong(f"{value!r:.80}, expected an ulong (an offset) or a timestamp, at least 0")


def _wrong(what: str) -> LinkFault:
    return LinkFault(AmqpCondition.INVALID_FIELD, f"the filter {AT} is {what}")
