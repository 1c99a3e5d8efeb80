"""The broker's limits and users from a TOML file. Pure: text in, configurations out.

    [engine]      the names of EngineConfig         [server]   the names of ServerLimits
    [log]         the names of LogConfig            [users]    name = "password"
                                                    and of ListenerConfig
    [connection]  the names of ConnectionLimits     [permissions]  the names of Permissions
    [compaction]  the names of CompactionConfig     [retention]    the names of RetentionConfig
    [[templates]] of queues (template_settings.py)

Rule 1: a key of the file is the name of a field; no second list of keys exists.
Rule 2: an unknown key or a bad value is an error with file, table and key; nothing is ignored.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import Field, dataclass, field, fields, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeVar

from ambermq.engine.config import EngineConfig
from ambermq.engine.errors import EngineError
from ambermq.engine.model.entry_word import WORD_BYTES
from ambermq.engine.model.queue import COUNT_MAX
from ambermq.engine.model.queue_template import QueueTemplates
from ambermq.engine.records.size_bounds import largest_record
from ambermq.log.config import BATCH_OVERHEAD_BYTES, LogConfig
from ambermq.log.errors import LogError
from ambermq.log.format.record import AUX_MAX, RECORD
from ambermq.protocol.amqp10.limits import ConnectionLimits, range_of
from ambermq.protocol.amqp10.session.unsettled import RUN_COUNT_MAX
from ambermq.protocol.gateway.links.outcome_mapping import outcome_bytes_max
from ambermq.protocol.gateway.nodes.request_response import REQUEST_BYTES_MAX
from ambermq.protocol.server.listeners.listener_config import ListenerConfig
from ambermq.protocol.server_limits import ServerLimits
from ambermq.tools.config.compaction_schedule import CompactionConfig
from ambermq.tools.config.listener_settings import read_listeners
from ambermq.tools.config.retention_schedule import RetentionConfig
from ambermq.tools.config.template_settings import read_templates
from ambermq.tools.terminal.errors import ToolError
from ambermq.tools.terminal.exit_codes import ExitCode

__all__ = ["Permissions", "Settings", "load_settings", "read_settings"]

_Config = TypeVar("_Config", EngineConfig, LogConfig, ConnectionLimits, ServerLimits, CompactionConfig, RetentionConfig)


@dataclass(frozen=True, slots=True)
class Permissions:
    """The users with extra permissions."""

    log: tuple[str, ...] = ()
    """Users that may read the source `/log`; without users every client of this machine may."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The limits and the users of a broker."""

    engine: EngineConfig = field(default_factory=EngineConfig)
    """Limits of queues and ticks."""
    log: LogConfig = field(default_factory=LogConfig)
    """Limits of segments and batches."""
    connection: ConnectionLimits = field(default_factory=ConnectionLimits)
    """Limits of one connection."""
    server: ServerLimits = field(default_factory=ServerLimits)
    """Limits of the server."""
    listeners: ListenerConfig = field(default_factory=ListenerConfig)
    """Listeners of the server: the other keys of `[server]`."""
    compaction: CompactionConfig = field(default_factory=CompactionConfig)
    """The schedule of automatic compaction."""
    retention: RetentionConfig = field(default_factory=RetentionConfig)
    """The schedule of retention."""
    users: Mapping[str, str] = field(default_factory=dict)
    """Name to password; empty: anonymous clients on the loopback interface."""
    permissions: Permissions = field(default_factory=Permissions)
    """The users with extra permissions."""


def load_settings(path: str) -> Settings:
    """Return the settings in a file; raise ToolError with exit code 2 if the file is invalid."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise _wrong(path, "the file", "UTF-8", str(error)) from error
    return read_settings(text, path)


def read_settings(text: str, path: str) -> Settings:
    """Return the settings in the text of a file; `path` is for error messages."""
    try:
        tables = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise _wrong(path, "the file", "TOML", str(error)) from error
    known = tuple(one.name for one in fields(Settings) if one.name != "listeners")
    templates = read_templates(tables.pop("templates", []), path)
    for name, table in tables.items():
        if name not in known:
            raise _unknown(path, f"table [{name}]", name, (*known, "templates"))
        if not isinstance(table, dict):
            raise _wrong(path, name, f"a table [{name}]", repr(table))
    engine = replace(_read_table(EngineConfig, tables.get("engine", {}), f"{path} [engine]"), templates=templates)
    log = _read_table(LogConfig, tables.get("log", {}), f"{path} [log]")
    connection = _read_table(ConnectionLimits, tables.get("connection", {}), f"{path} [connection]")
    server, listeners = _read_server(tables.get("server", {}), f"{path} [server]")
    _check_pieces(engine, log, connection, path)
    _check_records(engine, log, connection, server, path)
    return Settings(
        engine=engine,
        log=log,
        connection=connection,
        server=server,
        listeners=listeners,
        compaction=_read_table(CompactionConfig, tables.get("compaction", {}), f"{path} [compaction]"),
        retention=_read_table(RetentionConfig, tables.get("retention", {}), f"{path} [retention]"),
        users=_read_users(tables.get("users", {}), f"{path} [users]"),
        permissions=_read_permissions(tables.get("permissions", {}), f"{path} [permissions]"),
    )


def _read_table(kind: type[_Config], table: Mapping[str, Any], where: str) -> _Config:
    known = {one.name: one for one in fields(kind) if one.type is not QueueTemplates}
    for name, value in table.items():
        if name not in known:
            raise _unknown(where, name, name, tuple(known))
        _check_value(known[name], value, where)
    try:
        return kind(**table)
    except (LogError, EngineError) as error:
        raise _wrong(where, "the table", "consistent values", str(error)) from error


def _read_server(table: Mapping[str, Any], where: str) -> tuple[ServerLimits, ListenerConfig]:
    """Return the limits and the listeners of the table `[server]`, which has the keys of both."""
    names = {one.name for one in fields(ListenerConfig)}
    known = (*(one.name for one in fields(ServerLimits)), *names)
    for name in table:
        if name not in known:
            raise _unknown(where, name, name, known)
    limits = _read_table(ServerLimits, {name: one for name, one in table.items() if name not in names}, where)
    return limits, read_listeners({name: one for name, one in table.items() if name in names}, where)


def _check_pieces(engine: EngineConfig, log: LogConfig, connection: ConnectionLimits, path: str) -> None:
    """Check chunk_bytes: half of a batch is for one piece, the other half for the offsets of the pieces before it."""
    where, found, half = f"{path} [engine]", engine.chunk_bytes, log.batch_bytes_max // 2
    if not 0 < found <= half:
        raise _wrong(where, "chunk_bytes", f"1 to {half}, half of batch_bytes_max", str(found))
    pieces = -(-connection.message_bytes_max // found)
    pieces_max = 1 + min(AUX_MAX, (half - BATCH_OVERHEAD_BYTES - 3 * RECORD.size) // WORD_BYTES)
    if pieces > pieces_max:
        expected = f"at most {pieces_max} pieces for a message of message_bytes_max"
        raise _wrong(where, "chunk_bytes", expected, f"{found}, which gives {pieces} pieces")


def _check_records(
    engine: EngineConfig, log: LogConfig, connection: ConnectionLimits, server: ServerLimits, path: str
) -> None:
    """Check that a batch has room for the largest record, since a record is never split."""
    needed = largest_record(
        engine,
        deliveries_max=max(server.grant_messages, RUN_COUNT_MAX),
        link_bytes_max=server.container_id_bytes_max + server.link_name_bytes_max,
        request_bytes_max=REQUEST_BYTES_MAX,
        outcome_bytes_max=outcome_bytes_max(connection.performative_bytes_max),
    )
    if needed > log.record_bytes_max:
        least = log.batch_bytes_max + needed - log.record_bytes_max
        why = f"batch_bytes_target and a record of {needed} bytes, the largest that the other limits allow"
        raise _wrong(f"{path} [log]", "batch_bytes_max", f"at least {least}, for {why}", str(log.batch_bytes_max))


def _check_value(limit: Field[Any], value: Any, where: str) -> None:
    name = limit.name
    if limit.type is bool:
        if not isinstance(value, bool):
            raise _wrong(where, name, "true or false", repr(value))
    elif limit.type is str:
        if not isinstance(value, str):
            raise _wrong(where, name, "text in quotes", repr(value))
    else:
        _check_number(limit, value, where)


def _check_number(limit: Field[Any], value: Any, where: str) -> None:
    least, most = range_of(limit)
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise _wrong(where, limit.name, f"a whole number, at least {least}", repr(value))
    if value > (COUNT_MAX if most is None else most):
        raise _wrong(where, limit.name, f"at most {COUNT_MAX if most is None else most}", repr(value))


def _read_users(table: Mapping[str, Any], where: str) -> dict[str, str]:
    for name, password in table.items():
        if not name:
            raise _wrong(where, '""', "the name of a user", "none")
        if not isinstance(password, str) or not password:
            raise _wrong(where, name, "a password in quotes", "none" if password == "" else type(password).__name__)
    return dict(table)


def _read_permissions(table: Mapping[str, Any], where: str) -> Permissions:
    known = tuple(one.name for one in fields(Permissions))
    for name, users in table.items():
        if name not in known:
            raise _unknown(where, name, name, known)
        if not isinstance(users, list) or not all(isinstance(user, str) and user for user in users):
            raise _wrong(where, name, "a list of user names in quotes", repr(users))
    return Permissions(**{name: tuple(users) for name, users in table.items()})


def _wrong(where: str, name: str, expected: str, found: str) -> ToolError:
    return ToolError(f"{name} is invalid", where=where, expected=expected, found=found, code=ExitCode.USAGE)


def _unknown(where: str, what: str, name: str, known: tuple[str, ...]) -> ToolError:
    close = get_close_matches(name, known, 1)
    advice = f"did you mean {close[0]}?" if close else f"known are {', '.join(known)}"
    return ToolError(f"{what} is unknown", where=where, advice=advice, code=ExitCode.USAGE)
