"""Messages as JSON and as text: from and to the sections of AMQP. Pure: values in, values out.

NDJSON has one message a line. Every field is optional. `send --ndjson` reads what `receive --ndjson` prints, and sends
a message with the same sections, fields, values and types:

    id, correlation_id                            text, a number (ulong), or a typed value (uuid, binary)
    to, subject, reply_to, group_id, reply_to_group_id, content_type, content_encoding    text
    group_sequence, creation_time_ms, absolute_expiry_time_ms    numbers;  user_id    base64 as a typed value
    durable, priority, ttl_ms, first_acquirer     the header; `durable` is always printed
    delivery_count, delivery_annotations          printed; sent with `--keep-header` alone
    properties                                    application properties: an object
    annotations, footer                           objects, whose keys are symbols
    text | value | base64 | sequence              the body: UTF-8, an AMQP value, other bytes, lists of values
    hex, reason                                   a message that cannot be decoded: its bytes, and why

A value is as in terminal/json_values.py. A list of several data sections is a list of `base64`, empty for no body.
"""

import base64
import binascii
from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any, Final
from uuid import UUID

import msgspec

from ambermq.protocol.amqp10.errors import DecodeError, LocalError
from ambermq.protocol.amqp10.message.message import AmqpSequence, AmqpValue, BodySection, Data, Message, decode_message
from ambermq.protocol.amqp10.performatives.classes import Header, Properties
from ambermq.protocol.amqp10.types.decode import LIMITS, Buffer, Limits
from ambermq.protocol.amqp10.types.values import Array, Described, Map, Symbol, UByte, UInt, ULong
from ambermq.tools.messages.json_values import map_of_json, map_to_json, of_json, to_json
from ambermq.tools.terminal.errors import ToolError
from ambermq.tools.terminal.exit_codes import ExitCode

__all__ = [
    "MessageDraft",
    "body_text",
    "draft_bytes",
    "message_of",
    "plain",
    "present",
    "presented",
    "printed_text",
    "read_draft",
    "read_message",
    "text_or_base64",
    "with_properties",
]

_TEXT_NAMES: Final = (
    *("to", "subject", "reply_to", "content_type", "content_encoding", "group_id", "reply_to_group_id"),
    "group_sequence",
)
"""Fields of the properties that are the same in JSON."""
_ID_NAMES: Final = ("message_id", "correlation_id", "user_id")
_TIME_NAMES: Final = ("creation_time", "absolute_expiry_time")


class MessageDraft(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """A message in JSON; the module's docstring lists the fields."""

    id: str | int | dict[str, Any] | None = None
    to: str | None = None
    subject: str | None = None
    reply_to: str | None = None
    correlation_id: str | int | dict[str, Any] | None = None
    content_type: str | None = None
    group_id: str | None = None
    durable: bool | None = None
    priority: int | None = None
    ttl_ms: int | None = None
    delivery_count: int | None = None
    properties: dict[str, Any] = msgspec.field(default_factory=dict)
    annotations: dict[str, Any] = msgspec.field(default_factory=dict)
    text: str | None = None
    value: Any = msgspec.UNSET
    base64: str | list[str] | None = None
    user_id: dict[str, Any] | None = None
    content_encoding: str | None = None
    creation_time_ms: int | None = None
    absolute_expiry_time_ms: int | None = None
    group_sequence: int | None = None
    reply_to_group_id: str | None = None
    first_acquirer: bool | None = None
    delivery_annotations: dict[str, Any] = msgspec.field(default_factory=dict)
    footer: dict[str, Any] = msgspec.field(default_factory=dict)
    sequence: list[list[Any]] | None = None
    hex: str | None = None
    reason: str | None = None


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


def draft_bytes(draft: MessageDraft, *, durable: bool, keep_header: bool = False, where: str = "the message") -> bytes:
    """Return the encoded message of a draft: as `message_of`, or the bytes of a draft in hex.

    Raises ToolError if AMQP cannot encode it.
    """
    try:
        if draft.hex is not None:
            return bytes.fromhex(draft.hex)
        return message_of(draft, durable=durable, keep_header=keep_header, where=where).encode()
    except (LocalError, ValueError) as error:
        raise ToolError(
            "the message cannot be encoded in AMQP", where=where, found=str(error), code=ExitCode.USAGE
        ) from error


def message_of(draft: MessageDraft, *, durable: bool, keep_header: bool = False, where: str = "the message") -> Message:
    """Return the message of a draft.

    `durable` applies if the draft has no such field. `keep_header` sends the delivery-count and the delivery
    annotations too, which are of an earlier delivery.
    """
    return Message(
        header=Header(
            durable=durable if draft.durable is None else draft.durable,
            priority=None if draft.priority is None else UByte(draft.priority),
            ttl=None if draft.ttl_ms is None else UInt(draft.ttl_ms),
            first_acquirer=draft.first_acquirer,
            delivery_count=draft.delivery_count if keep_header else None,
        ),
        delivery_annotations=_map(draft.delivery_annotations, Symbol) if keep_header else None,
        message_annotations=_map(draft.annotations, Symbol),
        properties=Properties(
            message_id=_id(draft.id),
            correlation_id=_id(draft.correlation_id),
            user_id=_id(draft.user_id),
            creation_time=draft.creation_time_ms,
            absolute_expiry_time=draft.absolute_expiry_time_ms,
            **{name: getattr(draft, name) for name in _TEXT_NAMES},
        ),
        application_properties=_map(draft.properties, str),
        body=_body(draft, where),
        footer=_map(draft.footer, Symbol),
    )


def with_properties(properties: dict[str, Any], added: dict[str, str]) -> dict[str, Any]:
    """Return application properties in JSON with others, which replace those of the same names."""
    found = _map(properties, str) or {}
    if isinstance(found, dict):
        return dict(map_to_json({**found, **added}, str))
    return dict(
        map_to_json(Map((*(pair for pair in found.pairs if not _is_named(pair[0], added)), *added.items())), str)
    )


def _is_named(key: Any, names: dict[str, str]) -> bool:
    return type(key) is str and key in names


def _id(value: str | int | dict[str, Any] | None) -> Any:
    if isinstance(value, dict):
        return of_json(value)
    return ULong(value) if isinstance(value, int) else value


def _map(value: dict[str, Any], key_type: type[str]) -> Any:
    """Return a section that is a map; None without one. A value that is no map is a map of these two keys."""
    if not value:
        return None
    found = map_of_json(value, key_type)
    return found if isinstance(found, dict | Map) else {key_type(key): of_json(item) for key, item in value.items()}


def _body(draft: MessageDraft, where: str) -> tuple[BodySection, ...]:
    if draft.value is not msgspec.UNSET:
        return (AmqpValue(of_json(draft.value)),)
    if draft.sequence is not None:
        return tuple(AmqpSequence(of_json(values)) for values in draft.sequence)
    if draft.base64 is None:
        return (Data((draft.text or "").encode()),)
    contents = [draft.base64] if isinstance(draft.base64, str) else draft.base64
    try:
        return tuple(Data(base64.b64decode(content, validate=True)) for content in contents)
    except binascii.Error as error:
        raise ToolError("the body is not base64", where=where, found=str(error), code=ExitCode.USAGE) from error


def read_message(payload: Buffer) -> Message:
    """Return the message of its bytes, however many values it has. DecodeError is the only error."""
    return decode_message(payload, Limits(LIMITS.depth, max(LIMITS.elements, len(payload))))


def presented(payload: Buffer) -> dict[str, Any]:
    """Return a message as a JSON object; its bytes in hex and the reason if it cannot be decoded."""
    try:
        return present(read_message(payload))
    except DecodeError as error:
        return {"hex": bytes(payload).hex(), "reason": error.description}


def printed_text(payload: Buffer) -> str:
    """Return the body of a message as text for people; its bytes in hex and the reason if it cannot be decoded."""
    try:
        return body_text(read_message(payload))
    except DecodeError as error:
        return f"0x{bytes(payload).hex()} ({error.description})"


def present(message: Message) -> dict[str, Any]:
    """Return a received message as a JSON object, without the fields that are not set."""
    header, properties = message.header or Header(), message.properties or Properties()
    message_id, correlation_id, user_id = (_shown_id(getattr(properties, name)) for name in _ID_NAMES)
    shown = {
        "id": message_id,
        "correlation_id": correlation_id,
        "user_id": user_id,
        **{name: _text(getattr(properties, name)) for name in _TEXT_NAMES},
        **{f"{name}_ms": getattr(properties, name) for name in _TIME_NAMES},
        "durable": bool(header.durable),
        "priority": header.priority,
        "ttl_ms": header.ttl,
        "first_acquirer": header.first_acquirer,
        "delivery_count": header.delivery_count or None,
        "properties": _shown_map(message.application_properties, str),
        "annotations": _shown_map(message.message_annotations, Symbol),
        "delivery_annotations": _shown_map(message.delivery_annotations, Symbol),
        "footer": _shown_map(message.footer, Symbol),
    }
    return {name: value for name, value in shown.items() if value is not None} | _faithful_body(message)


def _text(value: Any) -> Any:
    """Return a field of the properties in JSON: a symbol as text."""
    return str(value) if isinstance(value, str) else value


def _shown_id(value: Any) -> Any:
    """Return an id in JSON: a number stands for an ulong, which is the only number that an id may be."""
    return int(value) if isinstance(value, int) else to_json(value)


def _shown_map(pairs: Any, key_type: type[str]) -> Any:
    return map_to_json(pairs, key_type) if isinstance(pairs, Map) or pairs else None


def _faithful_body(message: Message) -> dict[str, Any]:
    """Return the field of the body, which tells its kind and its sections apart."""
    match message.body:
        case (AmqpValue(value),):
            return {"value": to_json(value)}
        case (Data(content),):
            return text_or_base64(bytes(content))
        case (AmqpSequence(), *_):
            return {"sequence": [to_json(section.value) for section in message.body]}
        case _:
            contents = [section.value for section in message.body if isinstance(section, Data)]
            return {"base64": [base64.b64encode(content).decode() for content in contents]}


def text_or_base64(content: bytes) -> dict[str, Any]:
    """Return bytes as the field `text` if they are UTF-8, else as the field `base64`."""
    try:
        return {"text": content.decode()}
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(content).decode()}


def _shown_body(message: Message) -> dict[str, Any]:
    """Return the body for people: text if it is text, else base64 or plain values."""
    if all(isinstance(section, Data) for section in message.body):
        return text_or_base64(b"".join(section.value for section in message.body))  # type: ignore[misc]  # all are Data
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
        case UUID():
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
            return float(value) if isfinite(value) else str(float(value))
        case str():
            return str(value)
        case Mapping():
            return {str(plain(key)): plain(item) for key, item in value.items()}
        case Sequence():
            return [plain(item) for item in value]
    return str(value)
