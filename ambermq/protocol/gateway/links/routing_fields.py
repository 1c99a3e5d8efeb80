"""What matching asks of a message, read out of its encoded sections as far as asked.

    NAME                application-properties          a null is a value there: None
    annotations.NAME    message-annotations             likewise
    properties.NAME     properties                      null says that a field is not there
    header.NAME         header                          likewise, but for the defaults of the specification (3.2.1)

Rule 1: a section is found when the first name is asked for, decoded when one of its names is, and never twice.
Rule 2: bytes that cannot be read are a section that is not there; where a section's end cannot be told, those behind
it are not there either. Nothing raises.
Rule 3: delivery annotations are stepped over: they were for us alone, and do not stay with the message.
"""

from typing import Any, Final

from ambermq.engine.selectors.fields import ABSENT, Added
from ambermq.protocol.amqp10.errors import DecodeError
from ambermq.protocol.amqp10.message.sections import Section, SectionScanner
from ambermq.protocol.amqp10.performatives.classes import Header, Properties
from ambermq.protocol.amqp10.types.decode import Buffer, decode
from ambermq.protocol.amqp10.types.values import Map

__all__ = ["RoutingFields"]


class RoutingFields:
    """The fields of one encoded message, whole or its first frames."""

    __slots__ = ("_added", "_known", "_read", "_scanner")

    def __init__(self, body: Buffer, added: Added = (), /) -> None:
        """Read `body`, to which annotations were `added`: pairs of encoded key and value, before those of its own."""
        self._scanner = SectionScanner(body)
        self._added = added
        self._read: dict[int, Any] = {}
        self._known: dict[str, Any] = {}

    @property
    def to(self) -> str | None:
        """The address that the message itself names."""
        return _text(self.get("properties.to"))

    @property
    def subject(self) -> str | None:
        """What the message is about: a destination where the address names none."""
        return _text(self.get("properties.subject"))

    def get(self, name: str) -> Any:
        """Return what a name of `Fields` stands for, ABSENT where it is not there."""
        try:
            return self._known[name]
        except KeyError:
            value = self._known[name] = self._find(name)
            return value

    def _find(self, name: str) -> Any:
        prefix, dot, rest = name.partition(".")
        match prefix if dot else "":
            case "header":
                return self._field(Section.HEADER, rest)
            case "properties":
                return self._field(Section.PROPERTIES, rest)
            case "annotations":
                return self._section(Section.MESSAGE_ANNOTATIONS).get(rest, ABSENT)
            case _:
                return self._section(Section.APPLICATION_PROPERTIES).get(name, ABSENT)

    def _field(self, code: int, name: str) -> Any:
        """Return a field of header or properties by the name of the specification."""
        attribute = _ATTRIBUTES[code].get(name)
        if attribute is None:
            return ABSENT
        value = getattr(self._section(code), attribute)
        return _DEFAULTS[code].get(name, ABSENT) if value is None else value

    def _section(self, code: int) -> Any:
        """Return a section as a composite or a map, decoded at the first time, an empty one where there is none."""
        if code not in self._read:
            is_changed = code == Section.MESSAGE_ANNOTATIONS and self._added
            self._read[code] = self._annotations() if is_changed else self._decode(code)
        return self._read[code]

    def _decode(self, code: int) -> Any:
        try:
            value = self._scanner.value(code)
        except DecodeError:
            return _EMPTY[code]
        if value is None:
            return _EMPTY[code]
        return value if code in _ATTRIBUTES else _map(value)

    def _annotations(self) -> dict[Any, Any]:
        """Return the message annotations with those that were added."""
        own: dict[Any, Any] = self._decode(Section.MESSAGE_ANNOTATIONS)
        try:
            return {**own, **{decode(key)[0]: decode(value)[0] for key, value in self._added}}
        except (DecodeError, TypeError):
            return own


def _map(value: dict[Any, Any] | Map) -> dict[Any, Any]:
    """Return a map that finds its names, which are all that is asked for."""
    return value if isinstance(value, dict) else {key: item for key, item in value.pairs if isinstance(key, str)}


def _text(value: Any) -> str | None:
    return str(value) if isinstance(value, str) else None


_ATTRIBUTES: Final = {
    section.CODE: {attribute.replace("_", "-"): attribute for attribute in section.FIELDS}
    for section in (Header, Properties)
}
_DEFAULTS: Final[dict[int, dict[str, Any]]] = {
    Section.HEADER: {"durable": False, "priority": 4, "first-acquirer": False, "delivery-count": 0},
    Section.PROPERTIES: {},
}
_EMPTY: Final[dict[int, Any]] = {
    Section.HEADER: Header(),
    Section.MESSAGE_ANNOTATIONS: {},
    Section.PROPERTIES: Properties(),
    Section.APPLICATION_PROPERTIES: {},
}
