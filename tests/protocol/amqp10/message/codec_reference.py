"""The general codec's answers, to which the scanner is held: no function of sections.py or publish_outline.py.

Sections are decoded here as the described values that they are; order and types are written down once more.
"""

from typing import Any
from uuid import UUID

from ambermq.protocol.amqp10.errors import DecodeError
from ambermq.protocol.amqp10.message.message import AmqpSequence, AmqpValue, Data, Message
from ambermq.protocol.amqp10.message.publish_outline import message_id_hash
from ambermq.protocol.amqp10.performatives.read import decode_composite
from ambermq.protocol.amqp10.spec import PRIMITIVES
from ambermq.protocol.amqp10.types.decode import Buffer, Limits, decode
from ambermq.protocol.amqp10.types.values import Described, Map, Symbol, ULong

__all__ = ["RefusedError", "reference_message", "reference_outline"]

_SYMBOLS = {
    "amqp:header:list": 0x70,
    "amqp:delivery-annotations:map": 0x71,
    "amqp:message-annotations:map": 0x72,
    "amqp:properties:list": 0x73,
    "amqp:application-properties:map": 0x74,
    "amqp:data:binary": 0x75,
    "amqp:amqp-sequence:list": 0x76,
    "amqp:amqp-value:*": 0x77,
    "amqp:footer:map": 0x78,
}
_TYPES: dict[int, Any] = {
    **dict.fromkeys((0x70, 0x73, 0x76), list),
    **dict.fromkeys((0x71, 0x72, 0x74, 0x78), (dict, Map)),
    0x75: bytes,
    0x77: object,
}
_MAPS = {
    0x71: "delivery_annotations",
    0x72: "message_annotations",
    0x74: "application_properties",
    0x78: "footer",
}
_BODIES = {0x75: Data, 0x76: AmqpSequence, 0x77: AmqpValue}
_ENCODINGS = {encoding.code: encoding for encodings in PRIMITIVES.values() for encoding in encodings}
_ANY = frozenset((0, *_ENCODINGS))
_CONSTRUCTORS = {
    0x74: frozenset((0xC1, 0xD1)),
    0x75: frozenset((0xA0, 0xB0)),
    0x76: frozenset((0x45, 0xC0, 0xD0)),
    0x77: _ANY,
    0x78: frozenset((0xC1, 0xD1)),
}
_LIMITS = Limits(depth=33)
"""A section's own description is a level of nesting here, and none for the scanner."""


class RefusedError(Exception):
    """These bytes are no message, as far as they were read."""


def reference_message(payload: Buffer) -> Message:
    """Decode a whole message. Raises RefusedError."""
    try:
        return _message(payload)
    except DecodeError as failure:
        raise RefusedError from failure


def reference_outline(payload: Buffer) -> tuple[bool, int, bool]:
    """Return durable, message-id's hash, and whether there are delivery annotations. Raises RefusedError.

    The first field of header and properties is read, and of all else the structure, up to the end.
    """
    try:
        return _outline(payload)
    except (DecodeError, IndexError) as failure:
        raise RefusedError from failure


def _message(payload: Buffer) -> Message:
    message, position, previous = Message(body=()), 0, 0
    if not len(payload):
        raise RefusedError
    while position < len(payload):
        described, stop = decode(payload, position, len(payload), _LIMITS)
        if not isinstance(described, Described):
            raise RefusedError
        code, value = _code(described.descriptor, previous), described.value
        if not isinstance(value, _TYPES[code]) or (code != 0x77 and isinstance(value, Described)):
            raise RefusedError
        if code == 0x70:
            message.header = decode_composite(payload, position, stop)[0]  # type: ignore[assignment]
        elif code == 0x73:
            message.properties = decode_composite(payload, position, stop)[0]  # type: ignore[assignment]
        elif code in _MAPS:
            setattr(message, _MAPS[code], value)
        else:
            message.body = (*message.body, _BODIES[code](value))
        position, previous = stop, code
    return message


def _outline(payload: Buffer) -> tuple[bool, int, bool]:
    end, position, previous = len(payload), 0, 0
    durable, id_hash, has_annotations, has_early_footer = None, 0, False, False
    if not end:
        raise RefusedError
    while position < end:
        if payload[position]:
            raise RefusedError
        if payload[position : position + 3] == b"\0\x53\x78" and previous < 0x75 and not has_early_footer:
            has_early_footer = True
            position = _value_end(payload, position + 3, end, _CONSTRUCTORS[0x78])
            continue
        descriptor, start = decode(payload, position + 1, end)
        previous = _code(descriptor, previous)
        if has_early_footer and previous not in _BODIES:
            raise RefusedError
        if previous > 0x73:
            position = _value_end(payload, start, end, _CONSTRUCTORS[previous])
            continue
        field, stop = _first_field(payload, start, end, is_list=previous in (0x70, 0x73))
        if previous == 0x73:
            id_hash = _hash(field)
        if previous == 0x70:
            durable = field
            if field is not None and not isinstance(field, bool):
                raise RefusedError
        has_annotations |= previous == 0x71
        position = stop
    if has_early_footer and previous < 0x75:
        raise RefusedError
    return bool(durable), id_hash, has_annotations


def _value_end(payload: Buffer, start: int, end: int, constructors: frozenset[int]) -> int:
    """Return the end of a value with one of these constructors, by the widths of the specification's table."""
    constructor = payload[start]
    if constructor not in constructors:
        raise RefusedError
    if constructor == 0:
        return _value_end(payload, _value_end(payload, start + 1, end, _ANY), end, _ANY)
    encoding = _ENCODINGS[constructor]
    width = encoding.width
    if encoding.category != "fixed":
        if start + 1 + width > end:
            raise RefusedError
        width += int.from_bytes(payload[start + 1 : start + 1 + width])
    if start + 1 + width > end:
        raise RefusedError
    return start + 1 + width


def _hash(message_id: Any) -> int:
    if message_id is not None and not isinstance(message_id, ULong | UUID | bytes | str):
        raise RefusedError
    if isinstance(message_id, Symbol):
        raise RefusedError
    return message_id_hash(message_id)


def _first_field(payload: Buffer, start: int, end: int, *, is_list: bool) -> tuple[Any, int]:
    """Return the first field of a list, None of a map, and where either ends."""
    constructor = payload[start]
    if constructor == 0x45 and is_list:
        return None, start + 1
    if constructor not in ((0xC0, 0xD0) if is_list else (0xC1, 0xD1)):
        raise RefusedError
    width = 1 if constructor in (0xC0, 0xC1) else 4
    stop = start + 1 + width + int.from_bytes(payload[start + 1 : start + 1 + width])
    if stop > end or start + 1 + width > end:
        raise RefusedError
    if not is_list:
        return None, stop
    first = start + 1 + 2 * width
    if first > stop:
        raise RefusedError
    count = int.from_bytes(payload[first - width : first])
    return (decode(payload, first, stop)[0] if count else None), stop


def _code(descriptor: Any, previous: int) -> int:
    """Return the code of a section that may follow another one."""
    code = _SYMBOLS.get(descriptor, 0) if isinstance(descriptor, Symbol) else descriptor
    if not isinstance(descriptor, Symbol | ULong) or code not in _TYPES:
        raise RefusedError
    is_head_followed = previous < 0x75 and previous < code < 0x78
    is_body_followed = previous in (0x75, 0x76, 0x77) and (code == 0x78 or code == previous != 0x77)
    if not is_head_followed and not is_body_followed:
        raise RefusedError
    return int(code)
