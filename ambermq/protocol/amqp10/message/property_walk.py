"""The place of a property behind the first: the values before it are passed without decoding them."""

from typing import Final

from ambermq.protocol.amqp10.types.decode import Buffer

__all__ = ["field_after"]


def field_after(payload: Buffer, field: int, stop: int, count: int) -> int:
    """Return the position behind `count` primitive values from `field` on.

    It is `stop` or more if they end there, go beyond, or are no such values.
    """
    for _ in range(count):
        if field >= stop:
            break
        field = _next_field(payload, field, stop)
    return field


def _next_field(payload: Buffer, field: int, stop: int) -> int:
    """Return the position behind a primitive value; `stop` if it is no such value, or goes beyond."""
    kind = payload[field] >> 4
    if kind in _WIDTHS:
        return field + 1 + _WIDTHS[kind]
    size_bytes = _SIZE_BYTES.get(kind, 0)
    if not size_bytes or field + 1 + size_bytes > stop:
        return stop
    return field + 1 + size_bytes + int.from_bytes(payload[field + 1 : field + 1 + size_bytes], "big")


_WIDTHS: Final = {4: 0, 5: 1, 6: 2, 7: 4, 8: 8, 9: 16}
"""The bytes of a value of fixed width behind its format code, by the first half of that code."""
_SIZE_BYTES: Final = {0xA: 1, 0xC: 1, 0xE: 1, 0xB: 4, 0xD: 4, 0xF: 4}
