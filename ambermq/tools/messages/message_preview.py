"""A message in a listing: one bounded line for each value, without control characters.

Rule 1. Characters that are not printable are escaped. A long text is cut and ends in "…".
Rule 2. The first piece of a large message is enough: the listing shows the body in it.
Rule 3. Bytes that are not a valid message are shown in hex with the reason; they never fail a listing.
"""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, Final

from ambermq.log.buffer import Buffer
from ambermq.protocol.amqp10.errors import DecodeError
from ambermq.protocol.amqp10.message.message import Message
from ambermq.protocol.amqp10.message.sections import Section, SectionScanner
from ambermq.protocol.amqp10.performatives.classes import Header, Properties
from ambermq.protocol.amqp10.types.values import Map
from ambermq.tools.messages.message_text import body_text, plain, read_message
from ambermq.tools.terminal.output import printable

__all__ = ["PREVIEW_MAX", "message_facts", "one_line", "pairs_text"]

PREVIEW_MAX: Final = 100
"""Characters of a body that are shown."""


def one_line(text: str, length_max: int = PREVIEW_MAX) -> str:
    """Return a text on one line of at most `length_max` characters, with escapes for what is not printable."""
    shown = printable(text[: length_max + 1])
    return shown if len(shown) <= length_max else shown[: length_max - 1] + "…"


def pairs_text(pairs: Mapping[str, Any]) -> str:
    """Return names and values on one line."""
    return one_line(", ".join(f"{name}={value}" for name, value in pairs.items()))


def message_facts(payload: Buffer, *, is_whole: bool = True) -> dict[str, Any]:
    """Return message_id, header, properties, application_properties, annotations and a body preview of a message."""
    try:
        message = read_message(payload) if is_whole else _cut_message(payload)
        body = body_text(message) if is_whole else _cut_body(payload)
    except DecodeError as error:
        # The reason is first: the bytes may be cut.
        message, body = Message(body=()), f"({error.description}) 0x{bytes(payload[:PREVIEW_MAX]).hex()}"
    properties = _set_fields(message.properties or Properties())
    return {
        "message_id": properties.pop("message_id", None),
        "header": _set_fields(message.header or Header()),
        "properties": properties,
        "application_properties": _named(message.application_properties),
        "annotations": _named(message.message_annotations),
        "body": one_line(body),
    }


def _named(pairs: dict[Any, Any] | Map | None) -> dict[str, Any]:
    """Return the pairs of a map as JSON values by the texts of their keys, which may be of any type."""
    items = pairs.pairs if isinstance(pairs, Map) else (pairs or {}).items()
    return {str(plain(key)): plain(value) for key, value in items}


def _set_fields(composite: Header | Properties) -> dict[str, Any]:
    """Return the fields of a composite that are set, as JSON values."""
    values = {field.name: getattr(composite, field.name) for field in fields(composite)}
    return {name: plain(value) for name, value in values.items() if value is not None and value is not False}


def _cut_message(payload: Buffer) -> Message:
    """Return the sections before the body of a message that is cut off in its body."""
    scanner = SectionScanner(payload)
    scanner.body_code()
    return Message(
        header=scanner.value(Section.HEADER),
        message_annotations=scanner.value(Section.MESSAGE_ANNOTATIONS),
        properties=scanner.value(Section.PROPERTIES),
        application_properties=scanner.value(Section.APPLICATION_PROPERTIES),
        body=(),
    )


def _cut_body(payload: Buffer) -> str:
    """Return the start of the first body section if that is a data section, else nothing."""
    scanner = SectionScanner(payload)
    if scanner.body_code() != Section.DATA:
        return ""
    start = scanner.value_start
    start += 5 if payload[start : start + 1] == b"\xb0" else 2
    return bytes(payload[start : start + 4 * PREVIEW_MAX]).decode(errors="replace")
