"""An edited copy of an encoded message: some fields have other values, the body and the footer keep their bytes.

    NAME              an application property
    properties.NAME   subject, to, reply-to, correlation-id, content-type, content-encoding, group-id, ...
    header.NAME       durable, priority
    annotations.NAME  a message annotation

Rule 1. The copy is a message of its own: it has another message-id, unless it keeps that of the message.
Rule 2. It has no time to live, no absolute-expiry-time and no delivery time, since those of the message are over.
Rule 3. It says how often its message and all before it were redriven; later redrives of the copy count from there.
Rule 4. A message whose sections cannot be decoded is not edited.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from ambermq.protocol.amqp10.errors import DecodeError
from ambermq.protocol.amqp10.message.delivery_time import ANNOTATIONS
from ambermq.protocol.amqp10.message.message import Message
from ambermq.protocol.amqp10.message.sections import Section, SectionScanner
from ambermq.protocol.amqp10.performatives.classes import Header, Properties
from ambermq.protocol.amqp10.types.decode import Buffer
from ambermq.protocol.amqp10.types.values import Symbol, UByte, UInt, ULong

__all__ = ["EDITED_FROM", "FIELDS_MAX", "REDRIVE_COUNT", "MessageEdit", "edited", "total_redrives"]

EDITED_FROM: Final = Symbol("x-opt-edited-from")
"""The annotation of an edited copy: the offset of the message that it was made from."""
REDRIVE_COUNT: Final = Symbol("x-opt-redrive-count")
"""The annotation that says how often a message was redriven."""
_COUNT_MAX: Final = 0xFFFF_FFFF
FIELDS_MAX: Final = 100
"""The fields that an edit changes at most."""
_HEADER: Final = {"durable": bool, "priority": int}
_TEXTS: Final = ("to", "subject", "reply-to", "group-id", "reply-to-group-id")
_SYMBOLS: Final = ("content-type", "content-encoding")


class MessageEdit(Struct, frozen=True):
    """The changes of an edit."""

    values: Mapping[str, Any]
    """The new value of each field."""
    removed: Sequence[str] = ()
    """The fields that the copy has not."""
    id_prefix: str = ""
    """The beginning of the message-id of a copy, before the offset of the message; empty: it keeps the message-id."""

    def check(self) -> None:
        """Raise ValueError with the reason if no message can be edited so."""
        names = [*self.values, *self.removed]
        if len(names) > FIELDS_MAX:
            raise ValueError(f"an edit changes at most {FIELDS_MAX} fields, found {len(names)}")
        for name in names:
            _check_name(name)
        for name, value in self.values.items():
            _check_value(name, value)


def total_redrives(payload: Buffer, redrives: int) -> UInt:
    """Return a number of redrives of a message, plus those before its last edit. Raises DecodeError."""
    return _total_redrives(_map(SectionScanner(payload), Section.MESSAGE_ANNOTATIONS), redrives)


def _total_redrives(annotations: Mapping[Any, Any], redrives: int) -> UInt:
    before = annotations.get(REDRIVE_COUNT)
    if EDITED_FROM in annotations and isinstance(before, UInt):
        redrives += before
    return UInt(min(redrives, _COUNT_MAX))


def edited(payload: Buffer, edit: MessageEdit, *, offset: int, redrives: int = 0) -> bytes:
    """Return the edited copy of the message at an offset; `redrives` is how often that was redriven, with this time.

    Raises DecodeError, and LocalError if AMQP cannot encode a value.
    """
    scanner = SectionScanner(payload)
    scanner.body_code()
    rest = bytes(payload[scanner.position :])
    header, properties = scanner.value(Section.HEADER) or Header(), scanner.value(Section.PROPERTIES) or Properties()
    annotations = _map(scanner, Section.MESSAGE_ANNOTATIONS)
    application = _map(scanner, Section.APPLICATION_PROPERTIES)
    header.ttl = header.delivery_count = header.first_acquirer = None
    properties.absolute_expiry_time = None
    for name in ANNOTATIONS:
        annotations.pop(Symbol(name), None)
    _set(annotations, REDRIVE_COUNT, _total_redrives(annotations, redrives) or None)
    annotations[EDITED_FROM] = ULong(offset)
    if edit.id_prefix:
        properties.message_id = f"{edit.id_prefix}{offset}"
    for name, value in (*dict.fromkeys(edit.removed).items(), *edit.values.items()):
        section, _, field = name.partition(".")
        match section if field else "":
            case "header":
                setattr(header, field, UByte(value) if field == "priority" and value is not None else value)
            case "properties":
                setattr(properties, field.replace("-", "_"), _property(field, value))
            case "annotations":
                _set(annotations, Symbol(field), value)
            case _:
                _set(application, name, value)
    head = Message(
        header=header,
        message_annotations=annotations,
        properties=properties,
        application_properties=application or None,
        body=(),
    )
    return head.encode() + rest


def _check_name(name: str) -> None:
    section, dot, field = name.partition(".")
    if not name:
        raise ValueError("a field has no name: expected one such as properties.subject or annotations.NAME")
    known: Sequence[str] = ()
    if dot and section == "header":
        known = tuple(_HEADER)
    elif dot and section == "properties":
        known = (*_TEXTS, *_SYMBOLS, "correlation-id")
    if known and field not in known:
        raise ValueError(f"{name!r:.80} cannot be edited: {section} has {', '.join(known)} for an edit")
    if dot and section == "annotations" and not field:
        raise ValueError("'annotations.' names no annotation")


def _check_value(name: str, value: Any) -> None:
    """Raise ValueError if a field cannot have a value."""
    section, _, field = name.partition(".")
    if section == "header" and field == "durable" and not isinstance(value, bool):
        raise ValueError(f"{name}: expected true or false, found {value!r:.80}")
    if section == "header" and field == "priority":
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= 255:
            raise ValueError(f"{name}: expected a number from 0 to 255, found {value!r:.80}")
    elif section == "properties" and field and not isinstance(value, str):
        raise ValueError(f"{name}: expected a text, found {value!r:.80}")
    elif isinstance(value, (list, dict)) and section != "annotations":
        raise ValueError(f"{name}: an application property is no list and no map")


def _map(scanner: SectionScanner, code: int) -> dict[Any, Any]:
    value = scanner.value(code)
    if value is not None and not isinstance(value, dict):
        raise DecodeError(f"section 0x{code:02x} has keys that occur twice")
    return dict(value or {})


def _property(field: str, value: Any) -> Any:
    return Symbol(value) if field in _SYMBOLS and value is not None else value


def _set(section: dict[Any, Any], name: str, value: Any) -> None:
    if value is None:
        section.pop(name, None)
    else:
        section[name] = value
