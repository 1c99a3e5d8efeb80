"""The source filter that we apply: `ambermq:at` names a moment in the past (messaging, 3.5.8).

    key     ambermq:at, a symbol
    value   described by the symbol ambermq:at, or bare
              any integer: an offset, the moment after the event there
              timestamp:   a time

Rule 1. Filters that are not ours are not looked at and not echoed: the peer sees that they do not apply.
Rule 2. Ours with a value that names no moment is refused; it is never taken for something else.
"""

from dataclasses import dataclass
from typing import Any, Final

from protocol.errors import LinkFault
from protocol.spec import AmqpCondition
from protocol.values import Byte, Described, Int, Map, Short, Symbol, Timestamp, UByte, UInt, ULong, UShort

__all__ = ["AT", "At", "AtOffset", "AtTime", "read_at"]

AT: Final = Symbol("ambermq:at")
_INTEGERS: Final = (ULong, int, UInt, Int, UShort, Short, UByte, Byte)
_US_PER_MS: Final = 1000
_TIME_MS_MAX: Final = 253_402_300_799_999
"""The end of the year 9999: what lies beyond is as much the future, and no calendar can write it."""


@dataclass(frozen=True, slots=True)
class AtOffset:
    """The moment after the event at an offset."""

    offset: int


@dataclass(frozen=True, slots=True)
class AtTime:
    """A moment by the clock."""

    time_us: int
    """Microseconds since the epoch of Unix; a timestamp of AMQP has milliseconds."""


At = AtOffset | AtTime


def read_at(filters: Any) -> tuple[At | None, dict[Any, Any] | None]:
    """Return the moment that a source's filter set names, and the set as it is applied; None where it names none.

    Raises LinkFault (amqp:invalid-field) for a value that is neither an offset nor a timestamp.
    """
    given = _value_of(filters)
    if given is None:
        return None, None
    value = given
    if isinstance(given, Described):
        if given.descriptor != AT:
            raise _wrong(f"described by {given.descriptor!r:.80}, expected the symbol {AT}")
        value = given.value
    return _moment(value), {AT: given}


def _value_of(filters: Any) -> Any:
    pairs = filters.pairs if isinstance(filters, Map) else (filters or {}).items()
    return next((value for key, value in pairs if isinstance(key, str) and key == AT), None)


def _moment(value: Any) -> At:
    # By the type itself: a timestamp and a boolean are integers to Python.
    if type(value) is Timestamp and value >= 0:
        return AtTime(min(value, _TIME_MS_MAX) * _US_PER_MS)
    if type(value) in _INTEGERS and value >= 0:
        return AtOffset(int(value))
    raise _wrong(f"{value!r:.80}, expected an ulong (an offset) or a timestamp, at least 0")


def _wrong(what: str) -> LinkFault:
    return LinkFault(AmqpCondition.INVALID_FIELD, f"the filter {AT} is {what}")
