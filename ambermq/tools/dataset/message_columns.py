"""The contents of messages as columns: id, headers, properties, application properties and body.

Rule 1. Only the requested columns are decoded. An id is found without decoding the rest of the message.
Rule 2. Bytes that are no valid message have no id and no properties; the column `body` has all of them.
Rule 3. Of a message above 16 MiB the column `body` has the beginning: no reader holds it in memory as a whole.
"""

from collections.abc import Callable
from dataclasses import fields
from typing import Any, Final

import msgspec

from ambermq.protocol.amqp10.errors import DecodeError
from ambermq.protocol.amqp10.message.message import Data, Message, decode_message
from ambermq.protocol.amqp10.performatives.classes import Header, Properties
from ambermq.tools.messages.message_ids import id_text, message_id_of
from ambermq.tools.messages.message_preview import beginning_bytes, head_of
from ambermq.tools.messages.message_text import plain

__all__ = ["CONTENTS", "content_of", "content_of_beginning", "id_of"]

_json: Final = msgspec.json.Encoder().encode


def id_of(payload: bytes) -> str | None:
    """Return the message-id of a message, or of its first piece, as text."""
    shown = id_text(message_id_of(payload))
    return None if shown is None else str(shown)


def content_of(payload: bytes, names: tuple[str, ...]) -> tuple[Any, ...]:
    """Return the values of the columns `names` for a message."""
    try:
        message = decode_message(payload)
    except DecodeError:
        return tuple(payload if name == "body" else None for name in names)
    return tuple(CONTENTS[name](message) for name in names)


def content_of_beginning(payload: bytes, names: tuple[str, ...]) -> tuple[Any, ...]:
    """Return the values of the columns `names` for a large message by its first piece."""
    try:
        message = head_of(payload)
        body = beginning_bytes(payload)
    except DecodeError:
        return tuple(payload if name == "body" else None for name in names)
    return tuple(body if name == "body" else CONTENTS[name](message) for name in names)


def _headers(message: Message) -> str | None:
    values = _values(message.header)
    if message.message_annotations:
        values["annotations"] = plain(message.message_annotations)
    return _json(values).decode() if values else None


def _properties(message: Message) -> str | None:
    values = _values(message.properties)
    return _json(values).decode() if values else None


def _application_properties(message: Message) -> str | None:
    return _json(plain(message.application_properties)).decode() if message.application_properties else None


def _values(composite: Header | Properties | None) -> dict[str, Any]:
    """Return the fields of a composite that are neither null nor false."""
    values = {} if composite is None else {one.name: getattr(composite, one.name) for one in fields(composite)}
    return {name: plain(value) for name, value in values.items() if value is not None and value is not False}


def _body(message: Message) -> bytes:
    if all(isinstance(section, Data) for section in message.body):
        return b"".join(bytes(section.value) for section in message.body)
    values = [section.value for section in message.body]
    match values:
        case [str() as text]:
            return text.encode()
        case [bytes() | memoryview() as content]:
            return bytes(content)
        case [value]:
            return _json(plain(value))
    return _json([plain(value) for value in values])


CONTENTS: Final[dict[str, Callable[[Message], Any]]] = {
    "headers": _headers,
    "properties": _properties,
    "application_properties": _application_properties,
    "body": _body,
}
"""The function that builds each column from a message."""
