"""Wiring as a document, in TOML or JSON by the file's suffix. Pure: text in, entries out, and back.

    [[muxers]]         name, class, and the options of the class: separator, probability, seed
    [[queues]]         name (an address), template, messages_max and each other setting; missing: those of the template
    [[attachments]]    muxer, member (a queue's address or muxer:NAME), and destination, pattern, property or selector

Rule 1. The document leaves out what each broker has: the muxers QUEUE and TOPIC, and the attachment of each queue to
        QUEUE by its name. It leaves out objects that the broker has named itself; their names begin with $.
Rule 2. read(write(x)) is x. The order is kept, because a muxer tries its attachments in that order.
Rule 3. An unknown key or a value of another type is an error with file, table and key; nothing is ignored.
Rule 4. The document has each object once; a second entry is an error, even if it is equal.
"""

import json
import sys
import tomllib
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, NamedTuple, TypeVar

import tomli_w

from ambermq.engine.address import MUXER_MEMBER, member_address, queue_name
from ambermq.engine.errors import EngineError, Refused
from ambermq.engine.model.muxer import QUEUE_MUXER, TOPIC_MUXER, MuxerKind, Options
from ambermq.engine.settings.setting_table import SETTINGS
from ambermq.tools.config.attachment_options import (
    ARGUMENT_KEYS,
    AttachmentOptions,
    keys_of,
    options_in,
    options_of,
    options_text,
)
from ambermq.tools.terminal.errors import ToolError
from ambermq.tools.terminal.exit_codes import ExitCode
from ambermq.tools.wiring.client import options_given
from ambermq.tools.wiring.rows import WiringRows

__all__ = [
    "AttachmentEntry",
    "MuxerEntry",
    "QueueEntry",
    "Wiring",
    "check_suffix",
    "read_wiring",
    "settings_in",
    "wiring_of",
    "write_wiring",
]

_SUFFIXES: Final = (".toml", ".json")
_PREDECLARED: Final = (QUEUE_MUXER, TOPIC_MUXER)
_KINDS: Final = {kind.text: kind for kind in MuxerKind}
_KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    "muxers": ("name", "class", "separator", "probability", "seed"),
    "queues": ("name", "template", *SETTINGS),
    "attachments": ("muxer", "member", *ARGUMENT_KEYS),
}

_Entry = TypeVar("_Entry")


class MuxerEntry(NamedTuple):
    """A muxer in a document."""

    name: str
    kind: MuxerKind
    options: Options = Options()


class QueueEntry(NamedTuple):
    """A queue in a document."""

    name: str
    """The address of the queue."""
    template: str | None = None
    """None: the template that matches the name."""
    settings: Mapping[str, Any] = MappingProxyType({})
    """Values by the names of settings; a missing one is that of the template."""


class AttachmentEntry(NamedTuple):
    """An attachment in a document."""

    muxer: str
    member: str
    options: AttachmentOptions = AttachmentOptions()


class Wiring(NamedTuple):
    """The entries of a document."""

    muxers: tuple[MuxerEntry, ...] = ()
    queues: tuple[QueueEntry, ...] = ()
    attachments: tuple[AttachmentEntry, ...] = ()


def wiring_of(rows: WiringRows) -> Wiring:
    """Return the document of a broker's wiring."""
    muxers = [
        row for row in rows.muxers if not _is_generated(row["name"]) and row["name"] not in (QUEUE_MUXER, TOPIC_MUXER)
    ]
    queues = [row for row in rows.queues if not _is_generated(row["name"])]
    # A member that a repair has lost has no name, so a document cannot have its attachment.
    named = (row for row in rows.attachments if row["member"] is not None)
    attachments = (AttachmentEntry(row["muxer"], row["member"], options_of(row)) for row in named)
    return Wiring(
        tuple(MuxerEntry(row["name"], _KINDS[row["class"]], _options(row)) for row in muxers),
        tuple(QueueEntry(member_address(row["name"]), row["template"], settings_in(row)) for row in queues),
        tuple(entry for entry in attachments if not _is_implied(entry)),
    )


def settings_in(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the settings among the attributes of a queue. A broker of an earlier release knows fewer of them."""
    values = {name: row[name] for name in SETTINGS if row.get(name) is not None}
    # Numbers of AMQP have types of their own.
    return {name: int(value) if SETTINGS[name].is_number else value for name, value in values.items()}


def _is_generated(name: str) -> bool:
    """Return whether the broker chose the name."""
    return name.startswith("$")


def check_suffix(path: str) -> None:
    """Raise ToolError with exit code 2 if a file has neither suffix."""
    if not path.endswith(_SUFFIXES):
        expected = " or ".join(_SUFFIXES)
        raise ToolError("unknown suffix of the file", where=path, expected=expected, code=ExitCode.USAGE)


def read_wiring(text: str, path: str) -> Wiring:
    """Return the entries of a document; raise ToolError with exit code 2 if it is invalid."""
    arrays = _decoded(text, path)
    if not isinstance(arrays, dict):
        raise _wrong(path, "the file", "tables", repr(arrays))
    for name in arrays:
        if name not in _KEYS:
            raise _unknown(path, name, tuple(_KEYS))
    muxers = (_muxer(table, where) for table, where in _tables(arrays, "muxers", path))
    queues = (_queue(table, where) for table, where in _tables(arrays, "queues", path))
    attachments = (_attachment(table, where) for table, where in _tables(arrays, "attachments", path))
    return Wiring(
        _each_once(muxers, "muxers", path, lambda one: (one.name, f"muxer {one.name!r}")),
        _each_once(queues, "queues", path, lambda one: (_queue_key(one.name), f"queue {one.name!r}")),
        _each_once(attachments, "attachments", path, _attachment_key),
    )


def write_wiring(wiring: Wiring, *, is_json: bool) -> str:
    """Return the document of entries."""
    arrays: dict[str, Sequence[Mapping[str, Any]]] = {
        "muxers": [{"name": one.name, "class": one.kind.text, **options_given(one.options)} for one in wiring.muxers],
        "queues": [_queue_table(one) for one in wiring.queues],
        "attachments": [
            {"muxer": one.muxer, "member": one.member, **keys_of(one.options)} for one in wiring.attachments
        ],
    }
    return json.dumps(arrays, indent=2, ensure_ascii=False) + "\n" if is_json else _toml_text(arrays)


def _queue_table(entry: QueueEntry) -> Mapping[str, Any]:
    template = {} if entry.template is None else {"template": entry.template}
    return {"name": entry.name, **template, **entry.settings}


def _toml_text(arrays: Mapping[str, Sequence[Mapping[str, Any]]]) -> str:
    """Return arrays of tables as TOML, a line for each key.

    Each table is written alone, because tomli_w writes a short table inside an array on one line.
    """
    return "\n".join(f"[[{name}]]\n{tomli_w.dumps(table)}" for name, tables in arrays.items() for table in tables)


def _is_implied(entry: AttachmentEntry) -> bool:
    name = entry.member.removeprefix(MUXER_MEMBER)
    if _is_generated(entry.muxer) or _is_generated(name) or name.startswith("/queues/%24"):
        return True
    argument = entry.options.argument
    return entry.muxer == QUEUE_MUXER and isinstance(argument, str) and member_address(argument) == entry.member


def _options(row: Mapping[str, Any]) -> Options:
    named = {name: row[name] for name in ("separator", "probability", "seed") if row.get(name) is not None}
    return Options(**named)


def _decoded(text: str, path: str) -> Any:
    is_json = path.endswith(".json")
    try:
        return json.loads(text) if is_json else tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise _wrong(path, "the file", "JSON" if is_json else "TOML", str(error)) from error


def _tables(arrays: Mapping[str, Any], name: str, path: str) -> Iterator[tuple[Mapping[str, Any], str]]:
    """Yield the tables of an array, each with its place in the file; raise ToolError at an unknown key."""
    tables = arrays.get(name, [])
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise _wrong(path, name, f"tables [[{name}]]", repr(tables))
    for number, table in enumerate(tables, 1):
        where = f"{path} [[{name}]] {number}"
        for key in table:
            if key not in _KEYS[name]:
                raise _unknown(where, key, _KEYS[name])
        yield table, where


def _each_once(
    entries: Iterable[_Entry], name: str, path: str, key_of: Callable[[_Entry], tuple[Hashable, str]]
) -> tuple[_Entry, ...]:
    """Return all entries of an array; raise ToolError if two have one key. `key_of` returns key and description."""
    numbers: dict[Hashable, int] = {}
    unique: list[_Entry] = []
    for number, entry in enumerate(entries, 1):
        key, called = key_of(entry)
        first = numbers.setdefault(key, number)
        if first != number:
            what = f"{called} is a duplicate of [[{name}]] {first}"
            raise ToolError(what, where=f"{path} [[{name}]] {number}", advice="remove one of them", code=ExitCode.USAGE)
        unique.append(entry)
    return tuple(unique)


def _attachment_key(entry: AttachmentEntry) -> tuple[Hashable, str]:
    """Return the key of an attachment and its description; the key has the text, since True == 1 in Python."""
    by = options_text(entry.options)
    member = entry.member if entry.member.startswith(MUXER_MEMBER) else _queue_key(entry.member)
    called = f"the attachment of {entry.member!r} to {entry.muxer!r}"
    return (entry.muxer, member, entry.options.argument, by), f"{called} by {by!r:.80}" if by else called


def _queue_key(address: str) -> Hashable:
    """Return the queue name in an address; an invalid address is its own key, and the dry run refuses it."""
    try:
        return queue_name(address, name_bytes_max=sys.maxsize)
    except Refused:
        return (address,)


def _muxer(table: Mapping[str, Any], where: str) -> MuxerEntry:
    kind = _KINDS.get(_text(table, "class", where))
    if kind is None:
        raise _wrong(where, "class", f"one of {', '.join(_KINDS)}", repr(table["class"]))
    named: dict[str, Any] = {}
    if "separator" in table:
        named["separator"] = _text(table, "separator", where)
    if "probability" in table:
        named["probability"] = float(_number(table, "probability", where, is_whole=False))
    if "seed" in table:
        named["seed"] = int(_number(table, "seed", where, is_whole=True))
    return MuxerEntry(_text(table, "name", where), kind, Options(**named))


def _queue(table: Mapping[str, Any], where: str) -> QueueEntry:
    template = _text(table, "template", where) if "template" in table else None
    settings: dict[str, Any] = {}
    for key in SETTINGS:
        if key in table:
            try:
                settings[key] = SETTINGS[key].value_of(table[key])
            except EngineError as error:
                raise _wrong(where, key, SETTINGS[key].expected, repr(table[key])) from error
    return QueueEntry(_text(table, "name", where), template, settings)


def _attachment(table: Mapping[str, Any], where: str) -> AttachmentEntry:
    try:
        return AttachmentEntry(_text(table, "muxer", where), _text(table, "member", where), options_in(table))
    except EngineError as error:
        raise _wrong(where, "the table", "an attachment", str(error)) from error


def _text(table: Mapping[str, Any], key: str, where: str) -> str:
    value = table.get(key)
    if not isinstance(value, str):
        raise _wrong(where, key, "text in quotes", "none" if value is None else repr(value))
    return value


def _number(table: Mapping[str, Any], key: str, where: str, *, is_whole: bool) -> int | float:
    value = table[key]
    if isinstance(value, bool) or not isinstance(value, int if is_whole else int | float):
        raise _wrong(where, key, "a whole number" if is_whole else "a number", repr(value))
    return value


def _wrong(where: str, name: str, expected: str, found: str) -> ToolError:
    return ToolError(f"{name} is invalid", where=where, expected=expected, found=f"{found:.200}", code=ExitCode.USAGE)


def _unknown(where: str, key: str, known: tuple[str, ...]) -> ToolError:
    return ToolError(f"{key} is unknown", where=where, advice=f"known are {', '.join(known)}", code=ExitCode.USAGE)
