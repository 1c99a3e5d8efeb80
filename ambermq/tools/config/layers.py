"""The sources of the configuration as layers: the file, the environment, and the options of a command.

    AMBERMQ_SERVER__CONNECTIONS_MAX=2000      the key connections_max of [server]
    AMBERMQ_SERVER__CONNECTIONS_MAX_FILE=F    the same, with the value in the file F
    AMBERMQ_USERS__alice_FILE=F               the password of the user alice; the case of a user's name counts

Rule 1. A layer has the values of known keys as its source gives them. Unknown names are mistakes, with near names.
Rule 2. An unknown variable that begins with AMBERMQ_ is a mistake, except those that Kubernetes sets for a service
        that is called `ambermq`.
Rule 3. A list in a variable has commas, or is a TOML array. Templates are in the file alone.
"""

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, Final, final

from ambermq.tools.config.keys import CLASSES, Key, all_keys, keys_of, variable_of
from ambermq.tools.terminal.errors import ToolError
from ambermq.tools.terminal.exit_codes import ExitCode
from ambermq.tools.terminal.variables import COMMAND_VARIABLES, FILE_SUFFIX, PREFIX, read_variable_file

__all__ = ["USERS", "Entry", "Layer", "environment_layer", "file_layer", "option_layer", "unknown", "wrong"]

USERS: Final = "users"
_TEMPLATES: Final = "templates"
_TABLES: Final = (*CLASSES, USERS)
_USER_PREFIX: Final = variable_of(USERS, "")
_KUBERNETES: Final = re.compile(r"AMBERMQ_(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT(_\d+_(TCP|UDP|SCTP)(_\w+)?)?)")
_NUMBER: Final = re.compile(r"-?\d{1,20}")
_NEAR_MAX: Final = 3


@final
@dataclass(frozen=True, slots=True)
class Entry:
    """A value with its source."""

    value: Any
    where: str
    """The place for messages: file and table, variable, or option."""
    origin: str
    """The source, as `config show` names it."""


@final
@dataclass(frozen=True, slots=True)
class Layer:
    """The values of one source."""

    tables: dict[str, dict[str, Entry]] = field(default_factory=dict)
    """Table, then key, to its value."""
    templates: Any = None
    """The value of `templates` in the file; None without."""
    path: str = ""
    """The path of the file; empty for another source."""

    def put(self, table: str, name: str, entry: Entry) -> None:
        """Set the value of a key."""
        self.tables.setdefault(table, {})[name] = entry


def file_layer(text: str, path: str, mistakes: list[ToolError]) -> Layer:
    """Return the layer of a TOML text; `path` is for messages."""
    try:
        document = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        mistakes.append(wrong(path, "the file", "TOML", str(error)))
        return Layer(path=path)
    layer = Layer(templates=document.pop(_TEMPLATES, None), path=path)
    for name, table in document.items():
        if name not in _TABLES:
            mistakes.append(unknown(path, f"table [{name}]", name, (*_TABLES, _TEMPLATES)))
        elif not isinstance(table, dict):
            mistakes.append(wrong(path, name, f"a table [{name}]", repr(table)))
        else:
            _put_table(layer, name, table, mistakes)
    return layer


def _put_table(layer: Layer, table: str, values: Mapping[str, Any], mistakes: list[ToolError]) -> None:
    where = f"{layer.path} [{table}]"
    for name, value in values.items():
        if table != USERS and name not in keys_of(table):
            mistakes.append(unknown(where, name, name, tuple(keys_of(table))))
        else:
            layer.put(table, name, Entry(value, where, layer.path))


def environment_layer(variables: Mapping[str, str], mistakes: list[ToolError]) -> Layer:
    """Return the layer of the environment; read the files of variables whose names end with _FILE."""
    layer, known = Layer(), {key.variable: key for key in all_keys().values()}
    for name in sorted(variables):
        if not name.startswith(PREFIX) or _is_of_command(name) or _KUBERNETES.fullmatch(name):
            continue
        plain = name if name in known else name.removesuffix(FILE_SUFFIX)
        key = known.get(plain)
        user = plain.removeprefix(_USER_PREFIX) if plain.startswith(_USER_PREFIX) else ""
        if key is None and not user:
            mistakes.append(_unknown_variable(name, known))
            continue
        if plain != name and plain in variables:
            mistakes.append(wrong(name, plain, f"{plain} or {name}", "both"))
            continue
        try:
            text = variables[name] if plain == name else read_variable_file(name, variables[name])
        except ToolError as mistake:
            mistakes.append(mistake)
            continue
        value = text if key is None else value_of(key, text)
        layer.put(key.table if key else USERS, key.name if key else user, Entry(value, name, name))
    return layer


def option_layer(assignments: Iterable[str], entries: Mapping[str, Entry], mistakes: list[ToolError]) -> Layer:
    """Return the layer of the options: TABLE.KEY=VALUE of `--set`, and `entries`, path to value, of the others."""
    layer = Layer()
    for assignment in assignments:
        path, separator, text = assignment.partition("=")
        key = all_keys().get(path)
        if path.startswith(f"{USERS}."):
            mistakes.append(wrong("--set", path, "no password on a command line", "one"))
        elif not separator:
            mistakes.append(wrong("--set", path, "TABLE.KEY=VALUE", repr(assignment)))
        elif key is None:
            mistakes.append(unknown("--set", path, path, tuple(all_keys())))
        else:
            layer.put(key.table, key.name, Entry(value_of(key, text), "--set", "--set"))
    for path, entry in entries.items():
        table, _, name = path.partition(".")
        layer.put(table, name, entry)
    return layer


def value_of(key: Key, text: str) -> Any:
    """Return a text as a value of a key's type; a text that has another type stays a text, which a check refuses."""
    if key.is_list:
        return _list_of(text)
    if key.kind == "true or false":
        return {"true": True, "false": False}.get(text, text)
    return int(text) if key.kind == "a whole number" and _NUMBER.fullmatch(text) else text


def _list_of(text: str) -> Any:
    if not text.startswith("["):
        return [part.strip() for part in text.split(",") if part.strip()]
    try:
        return tomllib.loads(f"list = {text}")["list"]
    except (ValueError, RecursionError):
        return text


def _is_of_command(name: str) -> bool:
    return name in COMMAND_VARIABLES or name.removesuffix(FILE_SUFFIX) in COMMAND_VARIABLES


def _unknown_variable(name: str, known: Mapping[str, Key]) -> ToolError:
    if name.startswith(variable_of(_TEMPLATES, "")) or name == PREFIX + _TEMPLATES.upper():
        advice = "write templates in the configuration file"
        return ToolError(f"{name} is unknown", where="environment", advice=advice, code=ExitCode.USAGE)
    return unknown("environment", name, name, (*COMMAND_VARIABLES, *known), listed=COMMAND_VARIABLES)


def wrong(where: str, name: str, expected: str, found: str) -> ToolError:
    """Return the mistake of a value."""
    return ToolError(f"{name} is invalid", where=where, expected=expected, found=found, code=ExitCode.USAGE)


def unknown(where: str, what: str, name: str, known: tuple[str, ...], *, listed: tuple[str, ...] = ()) -> ToolError:
    """Return the mistake of an unknown name, with near ones; without any it names `listed`, or all `known`."""
    close = get_close_matches(name, known, 1 if not listed else _NEAR_MAX)
    if listed and not close:
        advice = f"known are {', '.join(listed)} and {variable_of('TABLE', 'KEY')}"
    else:
        advice = f"did you mean {' or '.join(close)}?" if close else f"known are {', '.join(known)}"
    return ToolError(f"{what} is unknown", where=where, advice=advice, code=ExitCode.USAGE)
