"""The configuration of a broker from all its sources: options before the environment before the file.

Rule 1. Each value is checked where it comes from, also one that another source overrides.
Rule 2. All mistakes are found, not the first alone. InvalidSettings has them, each as one message.
Rule 3. `resolve` is pure. SettingsSource reads the files, at the start and again at each reload.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any, final

from ambermq.engine.config import EngineConfig
from ambermq.engine.entries.entry_word import WORD_BYTES
from ambermq.engine.errors import EngineError
from ambermq.engine.records.size_bounds import largest_record
from ambermq.log.config import BATCH_OVERHEAD_BYTES, LogConfig
from ambermq.log.errors import LogError
from ambermq.log.format.record import AUX_MAX, RECORD
from ambermq.protocol.amqp10.limits import ConnectionLimits
from ambermq.protocol.amqp10.session.unsettled import RUN_COUNT_MAX
from ambermq.protocol.gateway.links.outcome_mapping import outcome_bytes_max
from ambermq.protocol.gateway.nodes.request_response import REQUEST_BYTES_MAX
from ambermq.tools.config.keys import CLASSES, Key, keys_of
from ambermq.tools.config.layers import USERS, Entry, Layer, environment_layer, file_layer, option_layer, wrong
from ambermq.tools.config.listener_settings import check_listeners
from ambermq.tools.config.settings import Settings
from ambermq.tools.config.telemetry_settings import check_telemetry
from ambermq.tools.config.template_settings import read_templates
from ambermq.tools.terminal.errors import ToolError

__all__ = ["InvalidSettings", "Resolution", "SettingsSource", "load_settings", "read_settings", "resolve"]


class InvalidSettings(ToolError):
    """The mistakes of a configuration; the message is that of the first."""

    def __init__(self, mistakes: Sequence[ToolError]) -> None:
        super().__init__("the configuration is invalid")
        self.mistakes = tuple(mistakes)
        self.message = mistakes[0].message  # type: ignore[misc]  # click declares it final
        self.exit_code = mistakes[0].exit_code  # type: ignore[misc]  # as in ToolError

    def show(self, file: IO[Any] | None = None) -> None:
        """Print one line for each mistake."""
        for mistake in self.mistakes:
            mistake.show(file)


@final
@dataclass(frozen=True, slots=True)
class Resolution:
    """The settings and the source of each value that is no default."""

    settings: Settings = field(default_factory=Settings)
    origins: Mapping[str, str] = field(default_factory=dict)
    """The path of a key to its source; without an entry it is the default."""


@final
@dataclass(frozen=True, slots=True)
class SettingsSource:
    """The sources of one broker's configuration, which may be read again."""

    path: str | None = None
    """The configuration file."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """The environment."""
    assignments: Sequence[str] = ()
    """The values of `--set`."""
    options: Mapping[str, Entry] = field(default_factory=dict)
    """The path of a key to the value of another option."""

    def load(self) -> Resolution:
        """Return the configuration; raise InvalidSettings with all mistakes."""
        mistakes: list[ToolError] = []
        text = "" if self.path is None else _text_of(self.path, mistakes)
        layers = [
            file_layer(text, self.path or "the file", mistakes),
            environment_layer(self.variables, mistakes),
            option_layer(self.assignments, self.options, mistakes),
        ]
        found = resolve(layers, mistakes)
        if mistakes:
            raise InvalidSettings(mistakes)
        return found


def load_settings(path: str) -> Settings:
    """Return the settings in a file; raise InvalidSettings with exit code 2 if it has mistakes."""
    return SettingsSource(path).load().settings


def read_settings(text: str, path: str) -> Settings:
    """Return the settings in the text of a file; `path` is for error messages. Raises InvalidSettings."""
    mistakes: list[ToolError] = []
    found = resolve([file_layer(text, path, mistakes)], mistakes)
    if mistakes:
        raise InvalidSettings(mistakes)
    return found.settings


def resolve(layers: Sequence[Layer], mistakes: list[ToolError]) -> Resolution:
    """Return the configuration of layers, the weakest first; append what is wrong to `mistakes`."""
    merged: dict[str, dict[str, Entry]] = {}
    for layer in layers:
        for table, entries in layer.tables.items():
            merged.setdefault(table, {}).update(_checked(table, entries, mistakes))
    path = next((layer.path for layer in layers if layer.path), "the configuration")
    parts = {table: _part(table, merged.get(table, {}), mistakes) for table in CLASSES}
    origins = {f"{table}.{name}": entry.origin for table, found in merged.items() for name, entry in found.items()}
    settings = Settings(**parts, users={name: entry.value for name, entry in merged.get(USERS, {}).items()})
    templates = next((layer.templates for layer in layers if layer.templates is not None), None)
    if templates is not None:
        origins["templates"] = path
        read = read_templates(templates, path, mistakes)
        settings = replace(settings, engine=replace(settings.engine, templates=read))
    try:
        check_together(settings, path, merged)
    except ToolError as mistake:
        mistakes.append(mistake)
    return Resolution(settings, origins)


def _text_of(path: str, mistakes: list[ToolError]) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        mistakes.append(wrong(path, "the file", "UTF-8", str(error)))
    except OSError as error:
        mistakes.append(wrong(path, "the file", "a readable file", error.strerror or str(error)))
    return ""


def _checked(table: str, entries: Mapping[str, Entry], mistakes: list[ToolError]) -> dict[str, Entry]:
    """Return the entries whose values are right."""
    found = {}
    for name, entry in entries.items():
        try:
            if table == USERS:
                _check_user(name, entry)
            else:
                _check_value(keys_of(table)[name], entry)
        except ToolError as mistake:
            mistakes.append(mistake)
        else:
            found[name] = entry
    return found


def _part(table: str, entries: Mapping[str, Entry], mistakes: list[ToolError]) -> Any:
    """Return the object of a table; values that its class refuses are mistakes, and left out."""
    values = {name: _frozen(entry.value) for name, entry in entries.items()}
    while True:
        try:
            return CLASSES[table](**values)
        except (LogError, EngineError) as error:
            where = ", ".join(dict.fromkeys(entry.where for entry in entries.values()))
            mistakes.append(wrong(where, "the table", "consistent values", str(error)))
            # The message begins with the name of the key. Without that value the others are checked, too.
            if values.pop(str(error).partition(" ")[0], None) is None:
                return CLASSES[table]()


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _check_value(key: Key, entry: Entry) -> None:
    value, where = entry.value, entry.where
    if key.is_list:
        if not isinstance(value, list | tuple) or not all(isinstance(one, str) and one for one in value):
            noun = "user names" if key.table == "permissions" else "text"
            raise wrong(where, key.name, f"a list of {noun} in quotes", repr(value))
    elif key.kind == "true or false":
        if not isinstance(value, bool):
            raise wrong(where, key.name, "true or false", repr(value))
    elif key.kind == "text":
        if not isinstance(value, str):
            raise wrong(where, key.name, "text in quotes", repr(value))
        if key.choices and value not in key.choices:
            raise wrong(where, key.name, f"one of {', '.join(key.choices)}", repr(value))
    else:
        _check_number(key, value, where)


def _check_number(key: Key, value: Any, where: str) -> None:
    least, most = key.range
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise wrong(where, key.name, f"a whole number, at least {least}", repr(value))
    if value > most:
        raise wrong(where, key.name, f"at most {most}", repr(value))


def _check_user(name: str, entry: Entry) -> None:
    if not name:
        raise wrong(entry.where, '""', "the name of a user", "none")
    password = entry.value
    if not isinstance(password, str) or not password:
        found = "none" if password == "" else type(password).__name__
        raise wrong(entry.where, name, "a password in quotes", found)


def check_together(settings: Settings, path: str, merged: Mapping[str, Mapping[str, Entry]] | None = None) -> None:
    """Raise ToolError if values of several tables do not fit each other."""

    def where(table: str, name: str) -> str:
        entry = (merged or {}).get(table, {}).get(name)
        return f"{path} [{table}]" if entry is None else entry.where

    check_listeners(settings.listeners, lambda name: where("listeners", name))
    check_telemetry(settings.telemetry, lambda name: where("telemetry", name))
    _check_pieces(settings.engine, settings.log, settings.connection, where("engine", "chunk_bytes"))
    _check_records(settings, where("log", "batch_bytes_max"))


def _check_pieces(engine: EngineConfig, log: LogConfig, connection: ConnectionLimits, where: str) -> None:
    """Check chunk_bytes: half of a batch is for one piece, the other half for the offsets of the pieces before it."""
    found, half = engine.chunk_bytes, log.batch_bytes_max // 2
    if not 0 < found <= half:
        raise wrong(where, "chunk_bytes", f"1 to {half}, half of batch_bytes_max", str(found))
    pieces = -(-connection.message_bytes_max // found)
    pieces_max = 1 + min(AUX_MAX, (half - BATCH_OVERHEAD_BYTES - 3 * RECORD.size) // WORD_BYTES)
    if pieces > pieces_max:
        expected = f"at most {pieces_max} pieces for a message of message_bytes_max"
        raise wrong(where, "chunk_bytes", expected, f"{found}, which gives {pieces} pieces")


def _check_records(settings: Settings, where: str) -> None:
    """Check that a batch has room for the largest record, since a record is never split."""
    log, server = settings.log, settings.server
    needed = largest_record(
        settings.engine,
        deliveries_max=max(server.grant_messages, RUN_COUNT_MAX),
        link_bytes_max=server.container_id_bytes_max + server.link_name_bytes_max,
        request_bytes_max=REQUEST_BYTES_MAX,
        outcome_bytes_max=outcome_bytes_max(settings.connection.performative_bytes_max),
    )
    if needed > log.record_bytes_max:
        least = log.batch_bytes_max + needed - log.record_bytes_max
        why = f"batch_bytes_target and a record of {needed} bytes, the largest that the other limits allow"
        raise wrong(where, "batch_bytes_max", f"at least {least}, for {why}", str(log.batch_bytes_max))
