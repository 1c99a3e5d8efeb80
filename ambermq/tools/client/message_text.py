"""Messages as JSON and as text: from and to the sections of AMQP. Pure: values in, values out.

NDJSON has one message a line. Every field is optional. `send --ndjson` reads what `receive --ndjson` prints:

    id, to, subject, reply_to, correlation_id, content_type, group_id    text (ids also numbers)
    durable, priority, ttl_ms, delivery_count                            the header; delivery_count is only printed
    properties                                                           application properties: an object
    annotations                                                          message annotations: an object, only printed
    text | value | base64                                                the body: UTF-8, any JSON value, other bytes
"""

import base64
import binascii
import uuid
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from ambermq.protocol.amqp10.message.message import AmqpValue, Data, Message
from ambermq.protocol.amqp10.performatives.classes import Header, Properties
from ambermq.protocol.amqp10.types.values import Array, Described, Map, UByte, UInt, ULong
from ambermq.tools.terminal.errors import ToolError
from ambermq.tools.terminal.exit_codes import ExitCode

__all__ = ["MessageDraft", "body_text", "message_of", "plain", "present", "read_draft"]

_TEXT_NAMES: Final = ("to", "subject", "reply_to", "content_type", "group_id")


class MessageDraft(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """A message in JSON; the module's docstring lists the fields."""

    id: str | int | None = None
    to: str | None = None
    subject: str | None = None
    reply_to: str | None = None
    correlation_id: str | int | None = None
    content_type: str | None = None
    group_id: str | None = None
    durable: bool | None = None
    priority: int | None = None
    ttl_ms: int | None = None
    delivery_count: int | None = None
    properties: dict[str, str | int | float | bool | None] = msgspec.field(default_factory=dict)
    annotations: dict[str, Any] = msgspec.field(default_factory=dict)
    text: str | None = None
    value: Any = msgspec.UNSET
    base64: str | None = None


_decode_draft = msgspec.json.Decoder(MessageDraft).decode


def read_draft(line: bytes, where: str) -> MessageDraft:
    """Return the message in one line of NDJSON; raise ToolError with `where` if it is invalid."""
    try:
        return _decode_draft(line)
    except msgspec.DecodeError as error:
        raise ToolError(
            "the line is not a message in JSON",
            where=where,
            expected='an object such as {"text": "hello", "properties": {"k": "v"}}',
            found=str(error),
            code=ExitCode.USAGE,
        ) from error


def message_of(draft: MessageDraft, *, durable: bool, where: str = "the message") -> Message:
    """Return the message of a draft; `durable` applies if the draft has no such field."""
    durable = durable if draft.durable is None else draft.durable
    return Message(
        header=Header(
            durable=durable,
            priority=None if draft.priority is None else UByte(draft.priority),
            ttl=None if draft.ttl_ms is None else UInt(draft.ttl_ms),
        ),
        properties=Properties(
            message_id=_id(draft.id),
            correlation_id=_id(draft.correlation_id),
            **{name: getattr(draft, name) for name in _TEXT_NAMES},
        ),
        application_properties=dict(draft.properties) or None,
        body=(_body(draft, where),),
    )


def _id(value: str | int | None) -> str | ULong | None:
    return ULong(value) if isinstance(value, int) else value


def _body(draft: MessageDraft, where: str) -> Data | AmqpValue:
    if draft.value is not msgspec.UNSET:
        return AmqpValue(draft.value)
    if draft.base64 is None:
        return Data((draft.text or "").encode())
    try:
        return Data(base64.b64decode(draft.base64, validate=True))
    except binascii.Error as error:
        raise ToolError("the body is not base64", where=where, found=str(error), code=ExitCode.USAGE) from error


def present(message: Message) -> dict[str, Any]:
    """Return a received message as a JSON object, without the fields that are not set."""
    header, properties = message.header or Header(), message.properties or Properties()
    shown = {
        "id": plain(properties.message_id),
        "correlation_id": plain(properties.correlation_id),
        **{name: plain(getattr(properties, name)) for name in _TEXT_NAMES},
        "durable": header.durable or None,
        "priority": header.priority,
        "ttl_ms": header.ttl,
        "delivery_count": header.delivery_count or None,
        "properties": plain(message.application_properties or None),
        "annotations": plain(message.message_annotations or None),
    }
    return {name: value for name, value in shown.items() if value is not None} | _shown_body(message)


def _shown_body(message: Message) -> dict[str, Any]:
    if all(isinstance(section, Data) for section in message.body):
        content = b"".join(section.value for section in message.body)  # type: ignore[misc]  # all are Data, checked above
        try:
            return {"text": content.decode()}
        except UnicodeDecodeError:
            return {"base64": base64.b64encode(content).decode()}
    values = [plain(section.value) for section in message.body]
    return {"value": values[0] if len(values) == 1 else values}


def body_text(message: Message) -> str:
    """Return the body as text for people: text as it is, other values as JSON, other bytes as base64."""
    shown = _shown_body(message)
    if isinstance(shown.get("value"), str):
        return str(shown["value"])
    return str(shown.get("text") or shown.get("base64") or _json(shown.get("value", "")))


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode() if value != "" else ""


def plain(value: Any) -> Any:
    """Return an AMQP value as a JSON value: bytes as text or base64, described values as plain ones, keys as text."""
    match value:
        case bytes() | memoryview():
            content = bytes(value)
            return content.decode() if content.isascii() else base64.b64encode(content).decode()
        case uuid.UUID():
            return str(value)
        case Described():
            return plain(value.value)
        case Array():
            return [plain(item) for item in value.items]
        case Map():
            return [[plain(key), plain(item)] for key, item in value.pairs]
        case bool() | None:
            return value
        case int():
            return int(value)
        case float():
            return float(value)
        case str():
            return str(value)
        case Mapping():
            return {str(plain(key)): plain(item) for key, item in value.items()}
        case Sequence():
            return [plain(item) for item in value]
    return str(value)
