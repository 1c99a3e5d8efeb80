"""A message in a listing: one bounded line for each value, without control characters.

Rule 1. Characters that are not printable are escaped. A long text is cut and ends in "…".
Rule 2. The first piece of a large message is enough: the listing shows the body in it.
Rule 3. Bytes that are not a valid message are shown as base64; they never fail a listing.
"""

import base64
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, Final

from ambermq.log.buffer import Buffer
from ambermq.protocol.amqp10.errors import DecodeError
from ambermq.protocol.amqp10.message.message import Message, decode_message
from ambermq.protocol.amqp10.message.sections import Section, SectionScanner
from ambermq.protocol.amqp10.performatives.classes import Header, Properties
from ambermq.tools.client.message_text import body_text, plain
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
        message = decode_message(payload) if is_whole else _cut_message(payload)
        body = body_text(message) if is_whole else _cut_body(payload)
    except DecodeError:
        message, body = Message(body=()), base64.b64encode(bytes(payload[:PREVIEW_MAX])).decode()
    properties = _set_fields(message.properties or Properties())
    return {
        "message_id": properties.pop("message_id", None),
        "header": _set_fields(message.header or Header()),
        "properties": properties,
        "application_properties": plain(message.application_properties or {}),
        "annotations": plain(message.message_annotations or {}),
        "body": one_line(body),
    }


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
    start += 5 if payload[start] == 0xB0 else 2
    return bytes(payload[start : start + 4 * PREVIEW_MAX]).decode(errors="replace")
