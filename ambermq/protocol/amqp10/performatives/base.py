"""The base of the composite types: a described list of typed fields, and how it is written (types, 1.4).

Rule 1: the fields' types come from the specification's table, by the class's NAME.
Rule 2: at full width every field is written, nulls too, in nested composites as well: some clients index the list
without looking at its length. Otherwise trailing fields that say no more than their default are left out.
Rule 3: a value that its field cannot carry is our own mistake: LocalError, naming the field.

    00 53 code                   descriptor: smallulong
    c0 size count | d0 ... | 45  list8, list32 or list0; then the fields
"""

from collections.abc import Callable
from operator import attrgetter
from struct import Struct, error
from typing import Any, ClassVar, Final

from ambermq.protocol.amqp10.errors import LocalError
from ambermq.protocol.amqp10.performatives.fields import Writer, defaults, field_writer
from ambermq.protocol.amqp10.performatives.tables import COMPOSITES
from ambermq.protocol.amqp10.types.values import Encoded

__all__ = ["Composite"]


class Composite(Encoded):
    """A composite type; protocol.performatives has them all."""

    __slots__ = ()

    CODE: ClassVar[int]
    """The descriptor's code."""
    NAME: ClassVar[str]
    """The descriptor's symbol."""
    FIELDS: ClassVar[tuple[str, ...]]
    """The attributes in the order of the wire."""

    _writers: ClassVar[tuple[tuple[Writer, ...], tuple[Writer, ...]]]
    _defaults: ClassVar[tuple[Any, ...]]
    _values: ClassVar[Callable[[Any], Any]]
    _heads: ClassVar[tuple[bytes, bytes, bytes]]

    def __init_subclass__(cls) -> None:
        """Take the writers from the specification's table."""
        slots = cls.__dict__.get("__slots__")
        if slots is None:
            return  # the plain class from which dataclass() makes the slotted one
        table = COMPOSITES[cls.NAME.split(":")[1]]
        cls.FIELDS = tuple(slots)
        cls._writers = (
            tuple(field_writer(field, full_width=False) for field in table.fields),
            tuple(field_writer(field, full_width=True) for field in table.fields),
        )
        cls._defaults = defaults(table)
        # With one name more than the fields, attrgetter returns a tuple for any number of fields; zip ignores the rest.
        cls._values = attrgetter(*slots, "CODE", "CODE")
        descriptor = bytes((0, 0x53, cls.CODE))
        cls._heads = (descriptor + b"\xc0", descriptor + b"\xd0", descriptor + b"\x45")

    def encode(self, full_width: bool = True) -> bytes:
        """Write descriptor and list, with every field when full_width; LocalError when a field cannot be written."""
        writers = self._writers[full_width]
        if not writers:
            return self._heads[2]
        values = type(self)._values(self)  # noqa: SLF001  # its own class
        try:
            parts = [b"\x40" if value is None else write(value) for value, write in zip(values, writers, strict=False)]
        except (error, ValueError, TypeError, AttributeError, KeyError, LocalError) as failure:
            raise self._bad_field(values) from failure
        if not full_width:
            while parts and values[len(parts) - 1] == self._defaults[len(parts) - 1]:
                parts.pop()
        narrow, wide, empty = self._heads
        if not parts:
            return empty
        fields = b"".join(parts)
        if len(fields) < 255:
            return narrow + _pack_8_8(len(fields) + 1, len(parts)) + fields
        return wide + _pack_32_32(len(fields) + 4, len(parts)) + fields

    def _bad_field(self, values: tuple[Any, ...]) -> LocalError:
        """Find the first field that cannot be written."""
        for name, value, write in zip(self.FIELDS, values, self._writers[True], strict=False):
            try:
                if value is not None:
                    write(value)
            except Exception as failure:  # noqa: BLE001  # whatever it was, it is told again with the field's name
                return LocalError(f"{self.NAME}: {name} cannot be {value!r}: {failure}")
        return LocalError(f"{self.NAME} cannot be written")


_pack_8_8: Final = Struct(">BB").pack
_pack_32_32: Final = Struct(">II").pack
