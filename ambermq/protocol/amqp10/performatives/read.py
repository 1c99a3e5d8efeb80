"""The reader of composite values: the descriptor selects the class, and the class has the fields.

Rule 1. Missing trailing fields and nulls are the defaults. A mandatory field has no default: without it the value is a
        DecodeError.
Rule 2. A field has one of the types that its class names. An unknown descriptor, a value of another type, and too many
        fields are DecodeErrors that name the composite and the field.
Rule 3. Composites nest only as in the classes (attach, source, rejected, error). So the depth of calls is bounded.

The list must end before `end`, every reader moves forward, and the last one must stop at the end of the list. So a read
past the list is found there at the latest. Until then it has only copied bytes that exist.
"""

from collections.abc import Callable
from struct import Struct, error
from typing import Any, Final

from ambermq.protocol.amqp10.errors import DecodeError
from ambermq.protocol.amqp10.performatives.base import Composite
from ambermq.protocol.amqp10.performatives.classes import COMPOSITES
from ambermq.protocol.amqp10.performatives.fields import FieldType, field_kinds, field_readers
from ambermq.protocol.amqp10.spec import PRIMITIVES
from ambermq.protocol.amqp10.types.decode import Buffer, Reader, decode
from ambermq.protocol.amqp10.types.values import Symbol, ULong

__all__ = ["decode_composite"]


class _Shape:
    """A composite type, prepared for reading."""

    __slots__ = ("make", "mandatory", "name", "names", "readers")

    def __init__(self, composite: type[Composite]) -> None:
        self.name = composite.TYPE
        self.make: Callable[..., Composite] = composite
        self.names = composite.FIELDS
        self.mandatory = [name for name, kind in zip(self.names, composite.TYPES, strict=True) if kind.mandatory]
        self.readers: tuple[Callable[[int], Reader | None], ...] = tuple(map(_reader_of, composite.TYPES))


def decode_composite(buffer: Buffer, position: int, end: int) -> tuple[Composite, int]:
    """Return the composite value at `position` and the position after it. DecodeError is the only error."""
    try:
        shape, position = _read_descriptor(buffer, position, end)
        return _read_list(shape, buffer, position, end)
    except (error, IndexError) as failure:
        raise DecodeError(f"a composite value is cut off at byte {end}") from failure


def _read_descriptor(buffer: Buffer, position: int, end: int) -> tuple[_Shape, int]:
    if buffer[position] != 0:
        raise DecodeError(f"expected a described value at byte {position}, found 0x{buffer[position]:02x}")
    if buffer[position + 1] == 0x53 and buffer[position + 2] in _SHAPES:
        return _SHAPES[buffer[position + 2]], position + 3
    descriptor, position = decode(buffer, position + 1, end)
    if isinstance(descriptor, ULong | Symbol) and descriptor in _SHAPES:
        return _SHAPES[descriptor], position
    raise DecodeError(f"the descriptor {descriptor!r} is not that of a composite type")


def _read_list(shape: _Shape, buffer: Buffer, position: int, end: int) -> tuple[Composite, int]:
    # The hot loop of each received frame: one look-up and one call for each field.
    code = buffer[position]
    if code == 0xC0:
        stop = position + 2 + buffer[position + 1]
        count = buffer[position + 2]
        position += 3
    elif code == 0x45:
        stop = position = position + 1
        count = 0
    elif code == 0xD0:
        size, count = _unpack_head(buffer, position + 1)
        stop = position + 5 + size
        position += 9
    else:
        raise DecodeError(f"{shape.name}: expected a list, found 0x{code:02x}")
    if stop > end:
        raise DecodeError(f"{shape.name}: the list ends at byte {stop}, past the end at byte {end}")
    if count > len(shape.names):
        raise DecodeError(f"{shape.name}: expected at most {len(shape.names)} fields, found {count}")
    values: dict[str, Any] = {}
    readers = shape.readers
    names = shape.names
    index = 0
    try:
        for index in range(count):
            code = buffer[position]
            position += 1
            if code != 0x40:
                reader = readers[index](code) or _read_misfit
                values[names[index]], position = reader(buffer, position, stop)
    except DecodeError as failure:
        raise DecodeError(f"{shape.name}: {_spelled(names[index])}: {failure.description}") from failure
    except (error, IndexError, ValueError) as failure:
        raise DecodeError(f"{shape.name}: {_spelled(names[index])}: {failure}") from failure
    if position != stop:
        raise DecodeError(f"{shape.name}: the list ends at byte {stop}, its fields at byte {position}")
    try:
        return shape.make(**values), position
    except TypeError as failure:
        missing = ", ".join(_spelled(name) for name in shape.mandatory if name not in values)
        raise DecodeError(f"{shape.name}: mandatory fields are missing: {missing}") from failure


def _spelled(name: str) -> str:
    """Return the name of a field as the specification spells it."""
    return name.replace("_", "-")


def _reader_of(field: FieldType) -> Callable[[int], Reader | None]:
    """Return the function from a format code to the field's reader; it returns None for a code of another type."""
    kinds = field_kinds(field)
    if not kinds:
        return lambda _code: _read_any
    if PRIMITIVES.keys().isdisjoint(kinds):
        return {0: _composite_reader(frozenset(kinds))}.get
    return field_readers(field).get


def _read_misfit(buffer: Buffer, position: int, _end: int) -> tuple[Any, int]:
    raise DecodeError(f"the field cannot have format code 0x{buffer[position - 1]:02x}")


def _read_any(buffer: Buffer, position: int, end: int) -> tuple[Any, int]:
    return decode(buffer, position - 1, end)


def _composite_reader(names: frozenset[str]) -> Reader:
    """Return the reader of a nested composite, which must have one of these names."""

    def read(buffer: Buffer, position: int, end: int) -> tuple[Composite, int]:
        shape, position = _read_descriptor(buffer, position - 1, end)
        if shape.name not in names:
            raise DecodeError(f"the field cannot be of type {shape.name}")
        return _read_list(shape, buffer, position, end)

    return read


_unpack_head: Final = Struct(">II").unpack_from
_SHAPES: Final[dict[int | str, _Shape]] = {
    descriptor: shape
    for composite in COMPOSITES.values()
    for shape in (_Shape(composite),)
    for descriptor in (composite.CODE, Symbol(composite.NAME))
}
