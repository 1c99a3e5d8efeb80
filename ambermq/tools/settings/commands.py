"""`ambermq config`: show, check, explain and reload the configuration of the broker."""

import os
from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any, Final

import click

from ambermq.protocol.management.administration.configuration import CONFIG_TYPE
from ambermq.tools.client.broker_option import broker_url, place_options
from ambermq.tools.client.broker_url import BrokerUrl
from ambermq.tools.client.link_client import LinkClient
from ambermq.tools.client.management_client import Management, RequestRefused
from ambermq.tools.config.effective_values import rows_of
from ambermq.tools.config.keys import Key, all_keys
from ambermq.tools.config.resolution import SettingsSource
from ambermq.tools.settings.toml_text import toml_of
from ambermq.tools.terminal.errors import ToolError, TranslatingGroup
from ambermq.tools.terminal.exit_codes import ExitCode
from ambermq.tools.terminal.output import output_option, print_done, print_rows, print_values, print_words
from ambermq.tools.terminal.variables import read_variable

__all__ = ["config"]

_COLUMNS: Final = ("key", "value", "source")
_RUNNING_COLUMNS: Final = (*_COLUMNS, "pending")
_CONFLICT: Final = 409
_FILE: Final = click.Path(dir_okay=False)


@click.group(cls=TranslatingGroup, epilog="Example: ambermq config explain connections_max")
def config() -> None:
    """Show, check, explain and reload the configuration.

    Options go before environment variables, and these before the file. The name of a variable has the table and the
    key: AMBERMQ_SERVER__CONNECTIONS_MAX.
    """


@config.command("show", epilog="Example: ambermq config show --config broker.toml --output toml")
@place_options
@click.option("--config", "path", type=_FILE, help="Configuration file (TOML). Default: AMBERMQ_CONFIG.")
@click.option("--set", "assignments", multiple=True, metavar="TABLE.KEY=VALUE", help="Value of a key, as for `serve`.")
@click.option("--changed", is_flag=True, help="Show only values that are not the default.")
@click.option(
    "--output",
    type=click.Choice(("table", "json", "ndjson", "toml")),
    default="table",
    show_default=True,
    help="Table for people, JSON for programs, TOML for a file.",
)
def show(
    url: str | None, data: str | None, path: str | None, assignments: tuple[str, ...], *, changed: bool, output: str
) -> None:
    """Show the effective values, and where each comes from.

    Passwords are masked. With --url or --data the command shows the values of that running broker. The column `pending`
    has the value of the file if it needs a restart.
    """
    is_running = bool(url or data)
    if is_running and (path or assignments):
        raise click.UsageError("--config and --set show a start: give them, or --url or --data")
    rows = _running_rows(url, data) if is_running else _local_rows(path, assignments)
    if changed:
        rows = [row for row in rows if row["source"] != "default" or row["pending"] is not None]
    if output == "toml":
        click.echo(toml_of(rows), nl=False)
    else:
        print_rows(rows, _RUNNING_COLUMNS if is_running else _COLUMNS, output)


@config.command("check", epilog="Example: ambermq config check broker.toml")
@click.argument("file", type=_FILE)
@output_option
def check(file: str, output: str) -> None:
    """Check the configuration in FILE, without the environment.

    Prints each mistake on standard error and exits 2 if there is one.
    """
    found = SettingsSource(file).load()
    print_done(f"{file}: no mistakes", {"file": file, "valid": True, "keys": sorted(found.origins)}, output)


@config.command("explain", epilog="Example: ambermq config explain server.connections_max")
@click.argument("key")
@output_option
def explain(key: str, output: str) -> None:
    """Explain KEY: its meaning, type, range, default and unit.

    The last lines say whether a reload changes it, and name its environment variable.
    KEY is a name, with or without its table, or the name of an environment variable.
    """
    for number, found in enumerate(_named(key)):
        if output == "table" and number:
            print_words("")
        print_values(_explanation(found), output)


@config.command("reload", epilog="Example: ambermq config reload --data ./data")
@place_options
@output_option
def reload(url: str | None, data: str | None, output: str) -> None:
    """Ask the running broker to read its configuration again.

    Exits 0 if all values are applied, 8 if some need a restart. Exits 2 if the configuration has mistakes: then nothing
    is applied. Exits 1 if other files, such as certificates, could not be used.
    """
    try:
        with LinkClient.connect(BrokerUrl.parse(broker_url(url, data))) as client:
            _, answer = Management(client).request("RELOAD", CONFIG_TYPE, {}, where="reload")
    except RequestRefused as refusal:
        if refusal.status == _CONFLICT:
            raise ToolError(refusal.message, advice="nothing was applied", code=ExitCode.USAGE) from refusal
        raise
    applied, restart, faults = ([str(one) for one in answer.get(name, ())] for name in ("applied", "restart", "faults"))
    print_done(_summary(applied, restart, faults), {"applied": applied, "restart": restart, "faults": faults}, output)
    if faults:
        raise click.exceptions.Exit(ExitCode.FAILED)
    if restart:
        raise click.exceptions.Exit(ExitCode.DIFFERENT)


def _summary(applied: Sequence[str], restart: Sequence[str], faults: Sequence[str]) -> str:
    parts = [f"applied: {', '.join(applied) or 'nothing has changed'}"]
    parts += [f"needs a restart: {', '.join(restart)}"] if restart else []
    return "; ".join((*parts, *faults))


def _running_rows(url: str | None, data: str | None) -> list[dict[str, Any]]:
    with LinkClient.connect(BrokerUrl.parse(broker_url(url, data))) as client:
        return list(Management(client).rows(CONFIG_TYPE))


def _local_rows(path: str | None, assignments: Sequence[str]) -> list[dict[str, Any]]:
    path = path or read_variable("AMBERMQ_CONFIG") or None
    return rows_of(SettingsSource(path, dict(os.environ), assignments).load())


def _named(text: str) -> list[Key]:
    """Return the keys of a name; some tables have keys of one name."""
    keys = all_keys()
    found = [key for key in keys.values() if text in (key.path, key.name, key.variable)]
    if found:
        return found
    near = get_close_matches(text, [*keys, *(key.name for key in keys.values())], 3)
    advice = f"did you mean {' or '.join(dict.fromkeys(near))}?" if near else "run `ambermq config show` for all keys"
    raise ToolError("no such key", where=text, advice=advice, code=ExitCode.NOT_FOUND)


def _explanation(key: Key) -> dict[str, Any]:
    values: dict[str, Any] = {"key": key.path, "meaning": key.text, "type": key.kind}
    if key.kind == "a whole number":
        least, most = key.range
        values |= {"least": least, "most": most}
    elif key.choices:
        values["choices"] = ", ".join(key.choices)
    default = list(key.default) if key.is_list else key.default
    change = "live, by a reload" if key.is_live else "needs a restart"
    return values | {"default": default, "unit": key.unit, "changes": change, "variable": key.variable}
