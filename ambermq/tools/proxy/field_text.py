"""Performatives as text: `open(container-id:client-1, channel-max:255)`, one line of bounded length.

Rule 1. A field that has its default is left out; a field's name is that of the specification.
Rule 2. Peers choose text: it is escaped and cut, and quoted unless it is a plain word.
Rule 3. A secret of SASL is never shown: each response but those of ANONYMOUS and EXTERNAL is masked.
"""

import re
from typing import Any, Final

from ambermq.protocol.amqp10.performatives.base import Composite
from ambermq.protocol.amqp10.performatives.classes import SaslChallenge, SaslInit, SaslOutcome, SaslResponse
from ambermq.protocol.amqp10.types.values import Array, Described, Map, Timestamp
from ambermq.tools.messages.message_text import plain
from ambermq.tools.terminal.output import printable

__all__ = ["bytes_text", "masked_fields", "performative_text"]

_TEXT_MAX: Final = 120
_BYTES_MAX: Final = 32
_ITEMS_MAX: Final = 32
_DEPTH_MAX: Final = 6
_PLAIN: Final = re.compile(r"[\w./:$#@*+-]+", re.ASCII)
_OPEN_MECHANISMS: Final = frozenset({"ANONYMOUS", "EXTERNAL"})
_MASK: Final = "(masked)"


class _Mask(str):
    """Text of ours that stands for a secret, and is not quoted."""

    __slots__ = ()


def performative_text(performative: Composite) -> str:
    """Return a performative as text."""
    return _composite_text(performative, 0)


def masked_fields(performative: Composite) -> dict[str, Any]:
    """Return the fields that differ from their default as values of JSON, with the names of the specification."""
    return {name: _json(value) for name, value in _fields(performative)}


def bytes_text(data: bytes) -> str:
    """Return bytes as hex, cut."""
    shown = data[:_BYTES_MAX].hex()
    return f"0x{shown}…" if len(data) > _BYTES_MAX else f"0x{shown}"


def _fields(performative: Composite) -> list[tuple[str, Any]]:
    """Return the fields to show; secrets are replaced."""
    shown = [
        (field.name, getattr(performative, attribute))
        for attribute, field in zip(performative.FIELDS, performative.TYPES, strict=True)
    ]
    return [
        (name, _unmasked(performative, value))
        for (name, value), field in zip(shown, performative.TYPES, strict=True)
        if value is not None and (value != field.default or field.mandatory)
    ]


def _unmasked(performative: Composite, value: Any) -> Any:
    if not isinstance(value, bytes):
        return value
    match performative:
        case SaslInit(mechanism="PLAIN"):
            user = value.split(b"\0")[1:2]
            return _Mask(f"(user {printable((user or [b'?'])[0].decode(errors='replace')[:_TEXT_MAX])}, masked)")
        case SaslInit(mechanism=mechanism) if mechanism in _OPEN_MECHANISMS:
            return value
        case SaslInit() | SaslResponse() | SaslChallenge() | SaslOutcome():
            return _Mask(_MASK)
        case _:
            return value


def _composite_text(value: Composite, depth: int) -> str:
    if depth > _DEPTH_MAX:
        return f"{value.TYPE}(…)"
    return f"{value.TYPE}({', '.join(f'{name}:{_text(item, depth + 1)}' for name, item in _fields(value))})"


def _text(value: Any, depth: int) -> str:
    if depth > _DEPTH_MAX:
        return "…"
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case _Mask():
            return value
        case str():
            return _word(value)
        case bytes():
            return bytes_text(value)
        case Timestamp():
            return f"timestamp({int(value)})"
        case int():
            return str(int(value))
        case float():
            return repr(float(value))
        case Composite():
            return _composite_text(value, depth)
        case _:
            return _nested(value, depth + 1)


def _nested(value: Any, depth: int) -> str:
    match value:
        case dict() | Map():
            pairs = list(value.items() if isinstance(value, dict) else value.pairs)
            parts = [f"{_text(key, depth)}:{_text(item, depth)}" for key, item in pairs[:_ITEMS_MAX]]
            return "{" + _joined(parts, len(pairs)) + "}"
        case list() | tuple() | Array():
            items = list(value.items if isinstance(value, Array) else value)
            return f"[{_joined([_text(item, depth) for item in items[:_ITEMS_MAX]], len(items))}]"
        case Described():
            return f"@{_text(value.descriptor, depth)}({_text(value.value, depth)})"
        case _:
            return _word(str(value))


def _joined(parts: list[str], count: int) -> str:
    return ", ".join([*parts, "…"] if count > len(parts) else parts)


def _word(text: str) -> str:
    shown = printable(text[:_TEXT_MAX]) + ("…" if len(text) > _TEXT_MAX else "")
    if _PLAIN.fullmatch(shown):
        return shown
    return '"' + shown.replace('"', '\\"') + '"'


def _json(value: Any) -> Any:
    match value:
        case Composite():
            return {"type": value.TYPE, **{name: _json(item) for name, item in _fields(value)}}
        case bytes():
            return f"0x{value.hex()}"
        case list() | tuple():
            return [_json(item) for item in value]
        case _Mask():
            return str(value)
        case _:
            return plain(value)
