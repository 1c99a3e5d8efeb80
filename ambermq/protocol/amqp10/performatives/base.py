"""The base of the composite types: a described list of typed fields, and its encoder (types, 1.4).

Rule 1. A class is the only definition of its type. A field's metadata names its AMQP type. A field without a default is
        mandatory. The writers here and the readers in read.py are derived from the fields.
Rule 2. At full width every field is written, nulls and nested composites included: some clients index the list without
        a check of its length. Otherwise trailing fields with their default are left out.
Rule 3. A value that its field cannot carry is an error of this program: a LocalError that names the field.

    00 53 code                   descriptor: smallulong
    c0 size count | d0 ... | 45  list8, list32 or list0; then the fields
"""

from collections.abc import Callable
from dataclasses import MISSING, Field, fields
from operator import attrgetter
from struct import Struct, error
from typing import Any, ClassVar, Final

from ambermq.protocol.amqp10.errors import LocalError
from ambermq.protocol.amqp10.performatives.fields import FieldType, Writer, field_writer
from ambermq.protocol.amqp10.types.values import Encoded

__all__ = ["Composite"]


class Composite(Encoded):
    """A composite type; classes.py has all of them."""

    __slots__ = ()

    CODE: ClassVar[int]
    """The descriptor's code."""
    NAME: ClassVar[str]
    """The descriptor's symbol."""
    FIELDS: ClassVar[tuple[str, ...]]
    """The attributes in the order of the wire."""
    TYPE: ClassVar[str]
    """The type's name in the specification, such as delete-on-close."""
    TYPES: ClassVar[tuple[FieldType, ...]]
    """The fields' AMQP types, in the order of FIELDS."""

    _writers: ClassVar[tuple[tuple[Writer, ...], tuple[Writer, ...]]]
    _defaults: ClassVar[tuple[Any, ...]]
    _values: ClassVar[Callable[[Any], Any]]
    _heads: ClassVar[tuple[bytes, bytes, bytes]]

    def __init_subclass__(cls) -> None:
        """Derive the writers from the fields."""
        slots = cls.__dict__.get("__slots__")
        if slots is None:
            return  # the plain class from which dataclass() makes the slotted one
        cls.FIELDS = tuple(slots)
        cls.TYPE = cls.NAME.split(":")[1]
        cls.TYPES = tuple(map(_field_type, fields(cls)))  # type: ignore[arg-type]  # the classes are, this base is not
        cls._writers = (
            tuple(field_writer(field, full_width=False) for field in cls.TYPES),
            tuple(field_writer(field, full_width=True) for field in cls.TYPES),
        )
        cls._defaults = tuple(field.default for field in cls.TYPES)
        # With one name more than the fields, attrgetter returns a tuple for any number of fields; zip ignores the rest.
        cls._values = attrgetter(*slots, "CODE", "CODE")
        descriptor = bytes((0, 0x53, cls.CODE))
        cls._heads = (descriptor + b"\xc0", descriptor + b"\xd0", descriptor + b"\x45")

    def encode(self, full_width: bool = True) -> bytes:
        """Return the encoding, with every field if full_width. Raises LocalError for a field that cannot be encoded."""
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
        """Return the error of the first field that cannot be encoded."""
        for name, value, write in zip(self.FIELDS, values, self._writers[True], strict=False):
            try:
                if value is not None:
                    write(value)
            except Exception as failure:  # noqa: BLE001  # any error of a writer becomes one with the field's name
                return LocalError(f"{self.NAME}: {name} cannot be {value!r}: {failure}")
        return LocalError(f"{self.NAME} cannot be encoded")


def _field_type(field: Field[Any]) -> FieldType:
    """Return the AMQP type of a class's field; only a mandatory field has no default."""
    is_mandatory = field.default is MISSING
    default = ... if is_mandatory else field.default
    return FieldType(field.name.replace("_", "-"), mandatory=is_mandatory, default=default, **field.metadata)


_pack_8_8: Final = Struct(">BB").pack
_pack_32_32: Final = Struct(">II").pack
