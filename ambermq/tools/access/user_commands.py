"""`ambermq user`: add, list, delete, enable, disable and import users, and set passwords.

Rule 1. A password comes from a file, from standard input or from a terminal.
Rule 2. With --data the commands work without a broker, and before its first start.
"""

from typing import Any, Final

import click

from ambermq.protocol.auth.users import ADMINISTRATOR, ROLES
from ambermq.protocol.server_limits import ServerLimits
from ambermq.tools.access.key_commands import key
from ambermq.tools.access.user_backends import user_backend
from ambermq.tools.client.broker_option import place_options, url_options
from ambermq.tools.client.password_option import new_password
from ambermq.tools.config.resolution import load_settings
from ambermq.tools.terminal.errors import ToolError, TranslatingGroup
from ambermq.tools.terminal.exit_codes import ExitCode
from ambermq.tools.terminal.options import confirm, destructive_options, dry_run_option
from ambermq.tools.terminal.output import list_output_option, output_option, print_json, print_rows, print_words

__all__ = ["user"]

_COLUMNS: Final = ("name", "enabled", "roles", "mechanisms", "connections", "keys")
_config_option = click.option(
    "--config",
    type=click.Path(dir_okay=False),
    help="Configuration file of the broker, for scram_iterations without a running broker.",
)
_new_password_option = click.option(
    "--password-file", metavar="FILE", help="File with the password; - is standard input. Default: ask on the terminal."
)
_plain_only_option = click.option(
    "--plain-only", is_flag=True, help="Store an argon2id hash instead of SCRAM keys: the user can only use PLAIN."
)


@click.group(cls=TranslatingGroup, epilog="Example: ambermq user list --data ./data")
def user() -> None:
    """Add, list, delete, enable, disable and import users.

    With --data the commands also work without a broker, and before its first start. `user key` has keys for tokens.
    """


user.add_command(key)


@user.command("add", epilog="Example: ambermq user add alice --password-file - --data ./data")
@click.argument("name")
@_new_password_option
@click.option("--role", "roles", multiple=True, type=click.Choice(ROLES), help="Role of the user; may be repeated.")
@_plain_only_option
@_config_option
@url_options
@output_option
def add(
    name: str,
    password_file: str | None,
    roles: tuple[str, ...],
    plain_only: bool,
    config: str | None,
    url: str | None,
    data: str | None,
    output: str,
) -> None:
    """Add the user NAME.

    A user without a role may do nothing until a rule allows it. AMBERMQ_PASSWORD_FILE has the password of the user in
    --url.
    """
    password = new_password(password_file)
    with user_backend(url, data, _limits(config), may_create=True, has_secret=True) as users:
        users.create(name, password, roles, plain_only=plain_only)
    _print_done(f"added user {name}", name, "added", output)


@user.command("list", epilog="Example: ambermq user list --data ./data --output json")
@place_options
@list_output_option
def list_users(url: str | None, data: str | None, output: str) -> None:
    """List all users, never their passwords or keys."""
    with user_backend(url, data, ServerLimits()) as users:
        rows = list(users.rows())
    if output == "table":
        lists = ("roles", "mechanisms", "keys")
        rows = [{**row, **{name: ", ".join(row.get(name, ())) for name in lists}} for row in rows]
    print_rows(rows, _COLUMNS, output)


@user.command("delete", epilog="Example: ambermq user delete alice --yes --data ./data")
@click.argument("name")
@destructive_options
@place_options
@output_option
def delete(name: str, dry_run: bool, url: str | None, data: str | None, output: str) -> None:
    """Delete the user NAME, and close its connections.

    Exits 6 if there is no such user.
    """
    if dry_run:
        row = _row(name, url, data)
        text = f"would delete user {name} and close {row['connections']:,} connections"
        _print(text, {"dry_run": True, "name": name, "connections": row["connections"]}, output)
        return
    confirm(lambda: f"This deletes the user {name}, who has {_row(name, url, data)['connections']:,} connections")
    with user_backend(url, data, ServerLimits()) as users:
        users.delete(name)
    _print_done(f"deleted user {name}", name, "deleted", output)


@user.command("passwd", epilog="Example: ambermq user passwd alice --password-file - --data ./data")
@click.argument("name")
@_new_password_option
@_plain_only_option
@_config_option
@url_options
@output_option
def passwd(
    name: str,
    password_file: str | None,
    plain_only: bool,
    config: str | None,
    url: str | None,
    data: str | None,
    output: str,
) -> None:
    """Set the password of the user NAME.

    Open connections of the user go on. Exits 6 if there is no such user.
    """
    password = new_password(password_file)
    with user_backend(url, data, _limits(config), has_secret=True) as users:
        users.update(name, password=password, plain_only=plain_only)
    _print_done(f"set the password of user {name}", name, "changed", output)


@user.command("enable", epilog="Example: ambermq user enable alice --data ./data")
@click.argument("name")
@place_options
@output_option
def enable(name: str, url: str | None, data: str | None, output: str) -> None:
    """Enable the user NAME again."""
    with user_backend(url, data, ServerLimits()) as users:
        users.update(name, enabled=True)
    _print_done(f"enabled user {name}", name, "enabled", output)


@user.command("disable", epilog="Example: ambermq user disable alice --data ./data")
@click.argument("name")
@place_options
@output_option
def disable(name: str, url: str | None, data: str | None, output: str) -> None:
    """Disable the user NAME, and close its connections."""
    with user_backend(url, data, ServerLimits()) as users:
        users.update(name, enabled=False)
    _print_done(f"disabled user {name}", name, "disabled", output)


@user.command("import", epilog="Example: ambermq user import --config broker.toml --data ./data")
@click.option(
    "--config",
    required=True,
    type=click.Path(dir_okay=False),
    help="Configuration file with the table [users].",
)
@dry_run_option
@url_options
@output_option
def import_users(config: str, dry_run: bool, url: str | None, data: str | None, output: str) -> None:
    """Add the users of the table [users] in a configuration file.

    They keep the role administrator. Users that are stored already stay as they are. Remove the table afterwards.
    """
    settings = load_settings(config)
    if not settings.users:
        where = f"{config} [users]"
        raise ToolError("no users", where=where, expected='name = "password"', code=ExitCode.USAGE)
    with user_backend(url, data, settings.server, may_create=True, has_secret=True) as users:
        known = {row["name"] for row in users.rows() if not row["configured"]}
        added = [name for name in settings.users if name not in known]
        for name in () if dry_run else added:
            users.create(name, settings.users[name], (ADMINISTRATOR,), plain_only=False)
    values = {"added": added, "known": sorted(known.intersection(settings.users))}
    count = f"{len(added)} of {len(settings.users)} users"
    if dry_run:
        _print(f"would add {count}: {', '.join(added) or 'none'}", {"dry_run": True, **values}, output)
    else:
        _print(f"added {count}; remove the table [users] from {config}", values, output)


def _limits(config: str | None) -> ServerLimits:
    return ServerLimits() if config is None else load_settings(config).server


def _print_done(text: str, name: str, what: str, output: str) -> None:
    _print(text, {"name": name, what: True}, output)


def _print(text: str, values: dict[str, Any], output: str) -> None:
    if output == "json":
        print_json(values)
    else:
        print_words(text)


def _row(name: str, url: str | None, data: str | None) -> dict[str, Any]:
    """Return the attributes of a user; raise ToolError if there is none."""
    with user_backend(url, data, ServerLimits()) as users:
        row = next((row for row in users.rows() if row["name"] == name), None)
    if row is None:
        raise ToolError(f"no user {name!r}", code=ExitCode.NOT_FOUND)
    return row
