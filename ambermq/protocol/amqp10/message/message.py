"""A decoded message, as a client uses it (messaging, 3.2).

The broker does not decode messages: sections.py and publish_outline.py read the fields that it needs from the bytes.

Rule 1. A missing section is None; a missing body is ().
Rule 2. The body is one or more Data, one or more AmqpSequence, or one AmqpValue.
"""

from dataclasses import dataclass, field
from typing import Any

from ambermq.protocol.amqp10.errors import DecodeError, LocalError
from ambermq.protocol.amqp10.message.sections import Section, SectionScanner
from ambermq.protocol.amqp10.performatives.classes import Header, Properties
from ambermq.protocol.amqp10.performatives.read import decode_composite
from ambermq.protocol.amqp10.types.decode import LIMITS, Buffer, Limits, decode
from ambermq.protocol.amqp10.types.encode import encode
from ambermq.protocol.amqp10.types.values import Map, Symbol, ULong

__all__ = ["AmqpSequence", "AmqpValue", "BodySection", "Data", "Message", "decode_message"]


@dataclass(frozen=True, slots=True)
class Data:
    """A body section of bytes."""

    value: bytes


@dataclass(frozen=True, slots=True)
class AmqpSequence:
    """A body section with a list of values."""

    value: list[Any]


@dataclass(frozen=True, slots=True)
class AmqpValue:
    """A body section with one value."""

    value: Any


BodySection = Data | AmqpSequence | AmqpValue


@dataclass(slots=True, kw_only=True)
class Message:
    """The sections of a message."""

    header: Header | None = None
    delivery_annotations: dict[Any, Any] | None = None
    """Keys are symbols, of class Symbol or str."""
    message_annotations: dict[Any, Any] | None = None
    """Keys as in the delivery annotations."""
    properties: Properties | None = None
    application_properties: dict[str, Any] | None = None
    """Values are of simple types: no list, map or array."""
    body: tuple[BodySection, ...] = field(default=(Data(b""),))
    footer: dict[Any, Any] | None = None
    """Keys as in the annotations."""

    def encode(self) -> bytes:
        """Return the encoded message. Raises LocalError if AMQP cannot encode a section."""
        if len({type(section) for section in self.body}) > 1:
            raise LocalError("a body has sections of one kind only")
        if len(self.body) > 1 and isinstance(self.body[0], AmqpValue):
            raise LocalError("a body has at most one amqp-value")
        return b"".join(
            (
                self.header.encode() if self.header else b"",
                _annotations(Section.DELIVERY_ANNOTATIONS, self.delivery_annotations),
                _annotations(Section.MESSAGE_ANNOTATIONS, self.message_annotations),
                self.properties.encode() if self.properties else b"",
                _section(Section.APPLICATION_PROPERTIES, self.application_properties),
                *(_section(_CODE_OF_BODY[type(section)], section) for section in self.body),
                _annotations(Section.FOOTER, self.footer),
            )
        )


def decode_message(payload: Buffer, limits: Limits = LIMITS) -> Message:
    """Return the message of its bytes; `limits` are those of each value. DecodeError is the only error."""
    scanner = SectionScanner(payload)
    message = Message(body=())
    body: list[BodySection] = []
    if not len(payload):
        raise DecodeError("the message has no section")
    while code := scanner.next_code():
        position, start, stop = scanner.position, scanner.value_start, scanner.skip()
        if code in _COMPOSITES:
            setattr(message, _COMPOSITES[code], decode_composite(payload, position, stop)[0])
        elif code in _BODY_OF_CODE:
            body.append(_BODY_OF_CODE[code](_value(payload, start, stop, limits)))
        else:
            setattr(message, _MAPS[code], _value(payload, start, stop, limits))
    message.body = tuple(body)
    return message


def _value(payload: Buffer, start: int, stop: int, limits: Limits) -> Any:
    value, position = decode(payload, start, stop, limits)
    if position != stop:
        raise DecodeError(f"a section ends at byte {stop}, its value at byte {position}")
    return value


def _section(code: int, value: Any) -> bytes:
    if value is None:
        return b""
    content = value.value if isinstance(value, Data | AmqpSequence | AmqpValue) else value
    return bytes((0, 0x53, code)) + encode(content)


def _annotations(code: int, annotations: dict[Any, Any] | None) -> bytes:
    """Return a section whose keys are symbols, or ulongs, which the specification reserves."""
    if not annotations or isinstance(annotations, Map):
        return _section(code, annotations)
    symbols = {key if isinstance(key, ULong) else Symbol(key): value for key, value in annotations.items()}
    return _section(code, symbols)


_COMPOSITES = {Section.HEADER: "header", Section.PROPERTIES: "properties"}
_MAPS = {
    Section.DELIVERY_ANNOTATIONS: "delivery_annotations",
    Section.MESSAGE_ANNOTATIONS: "message_annotations",
    Section.APPLICATION_PROPERTIES: "application_properties",
    Section.FOOTER: "footer",
}
_CODE_OF_BODY = {Data: Section.DATA, AmqpSequence: Section.AMQP_SEQUENCE, AmqpValue: Section.AMQP_VALUE}
_BODY_OF_CODE = {code: section for section, code in _CODE_OF_BODY.items()}
