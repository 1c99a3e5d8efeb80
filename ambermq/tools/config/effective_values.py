"""The values of a configuration as people and programs see them, and the part of it that a reload applies.

Rule: no value has a password. A user has a mask, and so has the password in a URL.
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

from ambermq.tools.config.keys import CLASSES, all_keys, keys_of
from ambermq.tools.config.resolution import Resolution
from ambermq.tools.config.settings import Settings

__all__ = ["MASK", "changed_keys", "live_settings", "rows_of", "shown", "values_of"]

MASK: Final = "********"
"""What stands for a secret."""
_URL_SECRET: Final = re.compile(r"(//[^/@\s:]*):[^/@\s]*@")
_URL_QUERY: Final = re.compile(r"(\bhttps?://[^\s?#]*[?#])\S+")


def live_settings(running: Settings, wanted: Settings) -> Settings:
    """Return the running settings with the values of the live keys in `wanted`."""
    parts = {}
    for table in CLASSES:
        part = getattr(wanted, table)
        live = {name: getattr(part, name) for name, key in keys_of(table).items() if key.is_live}
        parts[table] = replace(getattr(running, table), **live)
    parts["engine"] = replace(parts["engine"], templates=wanted.engine.templates)
    return Settings(**parts, users=wanted.users)


def values_of(settings: Settings) -> dict[str, Any]:
    """Return the values of all keys by path, secrets masked; of templates the names."""
    values = {path: shown(getattr(getattr(settings, key.table), key.name)) for path, key in all_keys().items()}
    users = {f"users.{name}": MASK for name in sorted(settings.users)}
    return values | users | {"templates": [one.name for one in settings.engine.templates.ordered]}


def rows_of(found: Resolution, wanted: Settings | None = None) -> list[dict[str, Any]]:
    """Return the keys with values and sources; `wanted` has the values of the next start, for `pending`."""
    values, keys = values_of(found.settings), all_keys()
    pending = values_of(wanted) if wanted is not None else values
    return [
        {
            "key": path,
            "value": value,
            "source": found.origins.get(path, "default"),
            "is_live": path not in keys or keys[path].is_live,
            "pending": pending.get(path) if pending.get(path) != value else None,
        }
        for path, value in values.items()
    ]


def shown(value: Any) -> Any:
    """Return a value as a person may see it: without the password in a URL, and the query of one for HTTP."""
    if isinstance(value, list | tuple):
        return [shown(one) for one in value]
    if not isinstance(value, str):
        return value
    return _URL_QUERY.sub(rf"\1{MASK}", _URL_SECRET.sub(rf"\1:{MASK}@", value))


def changed_keys(before: Settings, after: Settings) -> Iterator[str]:
    """Yield the keys whose values differ; all users are one."""
    for path, key in all_keys().items():
        if getattr(getattr(before, key.table), key.name) != getattr(getattr(after, key.table), key.name):
            yield path
    if before.engine.templates != after.engine.templates:
        yield "templates"
    if before.users != after.users:
        yield "users"
