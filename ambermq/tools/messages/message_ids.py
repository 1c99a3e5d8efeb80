"""Message-ids as text. Pure: text in, possible message-ids out.

AMQP has message-ids of four types, and a text does not show the type: `42` may be a string or a ulong, 32 hex digits a
string or a uuid. So a text stands for an id of each type that fits. A binary id is its UTF-8, or 0x and hex digits.
"""

from contextlib import suppress
from typing import Final
from uuid import UUID

from ambermq.protocol.amqp10.errors import DecodeError
from ambermq.protocol.amqp10.message.sections import Section, SectionScanner
from ambermq.protocol.amqp10.types.decode import Buffer

__all__ = ["MessageId", "id_text", "message_id_of", "possible_ids"]

MessageId = str | int | UUID | bytes
"""A message-id of any of its types."""

_ULONG_MAX: Final = (1 << 64) - 1


def possible_ids(text: str) -> list[MessageId]:
    """Return every message-id that a text can stand for, the string first."""
    ids: list[MessageId] = [text]
    if text.isascii() and text.isdigit() and int(text) <= _ULONG_MAX:
        ids.append(int(text))
    with suppress(ValueError):
        ids.append(UUID(text))
    ids.append(text.encode())
    if text.startswith("0x"):
        with suppress(ValueError):
            ids.append(bytes.fromhex(text[2:]))
    return ids


def message_id_of(payload: Buffer) -> MessageId | None:
    """Return the message-id of a message or its first piece, None if it has none or is invalid."""
    try:
        properties = SectionScanner(payload).value(Section.PROPERTIES)
    except DecodeError:
        return None
    return None if properties is None else _plain(properties.message_id)


def _plain(message_id: MessageId | None) -> MessageId | None:
    return bytes(message_id) if isinstance(message_id, memoryview) else message_id


def id_text(message_id: MessageId | None) -> str | int | None:
    """Return an id as text, integers as numbers; `possible_ids` of the text contains the id."""
    match message_id:
        case bytes():
            return message_id.decode() if message_id.isascii() else f"0x{message_id.hex()}"
        case UUID():
            return str(message_id)
        case int():
            return int(message_id)
        case _:
            return message_id
