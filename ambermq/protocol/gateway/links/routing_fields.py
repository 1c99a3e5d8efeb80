"""The fields of a message that matching needs, decoded from its sections on demand.

    NAME                application-properties          a null is a value: None
    annotations.NAME    message-annotations             likewise
    properties.NAME     properties                      a null field is absent
    header.NAME         header                          likewise, except for the defaults of the specification (3.2.1)

Rule 1. A section is located at the first look-up, decoded at the first look-up of one of its names, and never twice.
Rule 2. A section that cannot be decoded counts as absent. If its end is unknown, so do the sections after it. No call
        raises.
Rule 3. Delivery annotations are skipped: they are for the broker alone, and are not stored.
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
        """Read `body`. The annotations `added`, pairs of encoded key and value, precede its own."""
        self._scanner = SectionScanner(body)
        self._added = added
        self._read: dict[int, Any] = {}
        self._known: dict[str, Any] = {}

    @property
    def to(self) -> str | None:
        """The address in the message's own properties."""
        return _text(self.get("properties.to"))

    @property
    def subject(self) -> str | None:
        """The subject of the message: its destination if the address names none."""
        return _text(self.get("properties.subject"))

    def get(self, name: str) -> Any:
        """Return the value of a name of `Fields`, ABSENT without one."""
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
        """Return a section as a composite or a map, empty if it is absent; it is decoded at the first call."""
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
    """Return a map as a dict of its string keys, which are all that is looked up."""
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
