"""Message-ids as people type them. Pure: text in, what it may mean out.

AMQP has message-ids of four types, and a text does not say which: `42` may be a string or a ulong, 32 hex digits a
string or a uuid. So a text means each id that it can be written for; binary ones are their UTF-8, or 0x and hex.
"""

from contextlib import suppress
from typing import Final
from uuid import UUID

from ambermq.protocol.amqp10.errors import DecodeError
from ambermq.protocol.amqp10.message.sections import Section, SectionScanner
from ambermq.protocol.amqp10.types.decode import Buffer

__all__ = ["MessageId", "meanings_of", "message_id_of", "shown_id"]

MessageId = str | int | UUID | bytes
"""A message-id of any of its types."""

_ULONG_MAX: Final = (1 << 64) - 1


def meanings_of(text: str) -> list[MessageId]:
    """Return every message-id that a text can be written for, strings first."""
    meanings: list[MessageId] = [text]
    if text.isascii() and text.isdigit() and int(text) <= _ULONG_MAX:
        meanings.append(int(text))
    with suppress(ValueError):
        meanings.append(UUID(text))
    meanings.append(text.encode())
    if text.startswith("0x"):
        with suppress(ValueError):
            meanings.append(bytes.fromhex(text[2:]))
    return meanings


def message_id_of(payload: Buffer) -> MessageId | None:
    """Return the message-id of a message or its first piece, None where it has none or cannot be read."""
    try:
        properties = SectionScanner(payload).value(Section.PROPERTIES)
    except DecodeError:
        return None
    return None if properties is None else _plain(properties.message_id)


def _plain(message_id: MessageId | None) -> MessageId | None:
    return bytes(message_id) if isinstance(message_id, memoryview) else message_id


def shown_id(message_id: MessageId | None) -> str | int | None:
    """Return an id as people would type it."""
    match message_id:
        case bytes():
            return message_id.decode() if message_id.isascii() else f"0x{message_id.hex()}"
        case UUID():
            return str(message_id)
        case int():
            return int(message_id)
        case _:
            return message_id
