"""The keys of the configuration, from the fields of its classes: type, range, default, unit, and the docstring.

Rule 1. A key has a path, `server.connections_max`, and a variable, `AMBERMQ_SERVER__CONNECTIONS_MAX`.
Rule 2. The docstring of a field is read from the source, since Python keeps no docstrings of fields.
"""

import ast
import inspect
import textwrap
from dataclasses import Field, dataclass, fields, is_dataclass
from functools import cache
from typing import Any, Final, final

from ambermq.engine.model.queue_template import QueueTemplates
from ambermq.engine.settings.queue_settings import COUNT_MAX
from ambermq.protocol.amqp10.limits import range_of
from ambermq.tools.config.live_keys import is_live
from ambermq.tools.config.settings import Settings
from ambermq.tools.terminal.variables import PREFIX

__all__ = ["CLASSES", "Key", "all_keys", "keys_of", "variable_of"]

CLASSES: Final[dict[str, Any]] = {one.name: one.type for one in fields(Settings) if is_dataclass(one.type)}
"""The table of each key to its class."""
_UNITS: Final = {
    "descriptors_free_low": "descriptors",
    "descriptors_free_resume": "descriptors",
    "address_accepts_max": "connections",
    "http_address_accepts_max": "connections",
    "address_strangers_max": "connections",
    "channel_max": "number",
    "credit_grown_max": "messages",
    "dead_letter_moves_max": "moves",
    "dead_letter_queues_max": "queues",
    "credit_max": "messages",
    "garbage_percent": "per cent",
    "handle_max": "number",
    "local_connections_reserved": "connections",
    "past_jobs_max": "queries",
    "past_waiting_max": "queries",
    "query_results_max": "rows",
    "routes_cached_max": "destinations",
    "sample_percent": "per cent",
    "selectors_per_message_max": "selectors",
    "snapshot_bytes_per_s": "bytes a second",
    "snapshot_keep": "snapshots",
    "snapshots_waiting_max": "snapshots",
    "sources_max": "links",
    "unsettled_max": "deliveries",
    "vhosts_max": "virtual hosts",
}
"""The units that a name does not end with."""
_WORDS: Final = {"us": "us", "ms": "ms", "s": "seconds"}
_BOUNDS: Final = ("_max", "_min", "_target")
_NOUNS: Final[dict[Any, str]] = {bool: "true or false", str: "text"}


@final
@dataclass(frozen=True, slots=True)
class Key:
    """One key of the configuration."""

    table: str
    """The table of the file."""
    field: Field[Any]
    """The field of the table's class."""

    @property
    def name(self) -> str:
        """The name in its table."""
        return self.field.name

    @property
    def path(self) -> str:
        """The name with its table."""
        return f"{self.table}.{self.name}"

    @property
    def variable(self) -> str:
        """The name of its environment variable."""
        return variable_of(self.table, self.name.upper())

    @property
    def default(self) -> Any:
        """The value if no source has the key."""
        return self.field.default

    @property
    def is_list(self) -> bool:
        """Whether its value is a list of text."""
        return self.field.type not in (int, bool, str)

    @property
    def is_live(self) -> bool:
        """Whether a reload changes it."""
        return is_live(self.table, self.name)

    @property
    def choices(self) -> tuple[str, ...]:
        """The words that are possible; empty for any."""
        return tuple(self.field.metadata.get("choices", ()))

    @property
    def range(self) -> tuple[int, int]:
        """The least and the largest number."""
        least, most = range_of(self.field)
        return least, COUNT_MAX if most is None else most

    @property
    def kind(self) -> str:
        """The type of its value, in words."""
        if self.is_list:
            return "a list of text"
        return _NOUNS.get(self.field.type, "a whole number")

    @property
    def unit(self) -> str:
        """The unit of its value, in words."""
        if self.is_list:
            return "list"
        by_name = _UNITS.get(self.name) or _unit_by_name(self.name)
        return _NOUNS.get(self.field.type, by_name)

    @property
    def text(self) -> str:
        """The docstring of its field, on one line."""
        return _docstrings(CLASSES[self.table]).get(self.name, "")


def variable_of(table: str, name: str) -> str:
    """Return the environment variable of a key."""
    return f"{PREFIX}{table.upper()}__{name}"


@cache
def all_keys() -> dict[str, Key]:
    """Return all keys by path, in the order of the page."""
    return {key.path: key for table in CLASSES for key in keys_of(table).values()}


@cache
def keys_of(table: str) -> dict[str, Key]:
    """Return the keys of a table by name."""
    return {one.name: Key(table, one) for one in fields(CLASSES[table]) if one.type is not QueueTemplates}


def _unit_by_name(name: str) -> str:
    for bound in _BOUNDS:
        name = name.removesuffix(bound)
    words = name.split("_")
    return "bytes" if "bytes" in words else _WORDS.get(words[-1], words[-1])


@cache
def _docstrings(kind: type) -> dict[str, str]:
    """Return the docstrings of the fields of a class; each is the text below its field."""
    body = ast.parse(textwrap.dedent(inspect.getsource(kind))).body[0]
    assert isinstance(body, ast.ClassDef)
    found = {}
    for one, below in zip(body.body, body.body[1:], strict=False):
        match one, below:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                found[name] = " ".join(text.split())
    return found
