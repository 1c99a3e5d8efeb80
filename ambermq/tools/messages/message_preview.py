"""A message in a listing: one bounded line for each value, without control characters.

Rule 1. Characters that are not printable are escaped. A long text is cut and ends in "…".
Rule 2. The first piece of a large message is enough: the listing shows the beginning of the body in it.
Rule 3. Bytes that are not a valid message are shown in hex with the reason; they never fail a listing.
"""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, Final

from ambermq.log.buffer import Buffer
from ambermq.protocol.amqp10.errors import DecodeError
from ambermq.protocol.amqp10.message.beginning import leading_bytes
from ambermq.protocol.amqp10.message.message import Message
from ambermq.protocol.amqp10.message.sections import Section, SectionScanner
from ambermq.protocol.amqp10.performatives.classes import Header, Properties
from ambermq.protocol.amqp10.types.values import Map
from ambermq.tools.messages.message_text import body_text, plain, present, read_message, text_or_base64
from ambermq.tools.terminal.output import printable

__all__ = [
    "PREVIEW_MAX",
    "WHOLE_BYTES_MAX",
    "beginning_bytes",
    "beginning_facts",
    "head_of",
    "message_facts",
    "one_line",
    "pairs_text",
]

PREVIEW_MAX: Final = 100
"""Characters of a body that are shown."""
WHOLE_BYTES_MAX: Final = 16 << 20
"""The largest message that a listing, an export or an archive holds in memory as a whole."""
_BEGINNING_BYTES: Final = 1000
_BODIES: Final = ("text", "value", "base64", "sequence")
"""The fields of a message in JSON that have its body."""
_CHARACTER_BYTES_MAX: Final = 4


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
        message = read_message(payload) if is_whole else head_of(payload)
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


def beginning_facts(payload: Buffer, size: int) -> dict[str, Any]:
    """Return a message that is too large to be shown as a JSON object, by its first piece.

    The object has the sections before the body, the first bytes of the body as `beginning`, and the size as `bytes`.
    It is no message for `send`, which refuses these two fields.
    """
    try:
        head = {name: value for name, value in present(head_of(payload)).items() if name not in _BODIES}
        content = _whole_characters(beginning_bytes(payload)[:_BEGINNING_BYTES])
    except DecodeError as error:
        head, content = {"reason": error.description}, bytes(payload[:_BEGINNING_BYTES])
    return {**head, "beginning": text_or_base64(content), "bytes": size}


def _whole_characters(content: bytes) -> bytes:
    """Return bytes without the beginning of a character of UTF-8 at their end."""
    try:
        content.decode()
    except UnicodeDecodeError as error:
        return content[: error.start] if error.start > len(content) - _CHARACTER_BYTES_MAX else content
    return content


def _named(pairs: dict[Any, Any] | Map | None) -> dict[str, Any]:
    """Return the pairs of a map as JSON values by the texts of their keys, which may be of any type."""
    items = pairs.pairs if isinstance(pairs, Map) else (pairs or {}).items()
    return {str(plain(key)): plain(value) for key, value in items}


def _set_fields(composite: Header | Properties) -> dict[str, Any]:
    """Return the fields of a composite that are set, as JSON values."""
    values = {field.name: getattr(composite, field.name) for field in fields(composite)}
    return {name: plain(value) for name, value in values.items() if value is not None and value is not False}


def head_of(payload: Buffer) -> Message:
    """Return the sections before the body of a message that is cut off in its body. Raises DecodeError."""
    scanner = SectionScanner(payload)
    scanner.body_code()
    return Message(
        header=scanner.value(Section.HEADER),
        message_annotations=scanner.value(Section.MESSAGE_ANNOTATIONS),
        properties=scanner.value(Section.PROPERTIES),
        application_properties=scanner.value(Section.APPLICATION_PROPERTIES),
        body=(),
    )


def beginning_bytes(payload: Buffer) -> bytes:
    """Return the bytes of the first body section that a cut message has, if it is binary or text. Raises DecodeError.

    Nothing of a body of another type.
    """
    scanner = SectionScanner(payload)
    if scanner.body_code() not in (Section.DATA, Section.AMQP_VALUE):
        return b""
    return bytes(leading_bytes(payload, scanner.value_start, len(payload)))


def _cut_body(payload: Buffer) -> str:
    return beginning_bytes(payload)[: 4 * PREVIEW_MAX].decode(errors="replace")
