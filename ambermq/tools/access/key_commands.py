"""`ambermq user key`: add, list and delete the keys by which a user signs tokens for `$cbs`.

Rule 1. A key is shown once: on standard output, or in a new file of mode 0600.
Rule 2. No listing has a key, only its id.
"""

import os
from pathlib import Path
from typing import Final

import click

from ambermq.protocol.server_limits import ServerLimits
from ambermq.tools.access.user_backends import user_backend
from ambermq.tools.broker.users.user_administration import EVERY_KEY
from ambermq.tools.client.broker_option import place_options
from ambermq.tools.config.resolution import load_settings
from ambermq.tools.terminal.errors import ToolError
from ambermq.tools.terminal.exit_codes import ExitCode
from ambermq.tools.terminal.options import confirm, destructive_options
from ambermq.tools.terminal.output import list_output_option, output_option, print_json, print_rows, print_words

__all__ = ["key"]

_COLUMNS: Final = ("user", "id")
_config_option = click.option(
    "--config",
    type=click.Path(dir_okay=False),
    help="Configuration file of the broker, for user_keys_max without a running broker.",
)


@click.group(epilog="Example: ambermq user key add alice --file alice.key --data ./data")
def key() -> None:
    """Add, list and delete the keys by which users sign tokens.

    Clients of Azure log in by tokens: SharedAccessKeyName is the user, SharedAccessKey the key.
    """


@key.command("add", epilog="Example: ambermq user key add alice --file alice.key --data ./data")
@click.argument("name")
@click.option("--file", "path", metavar="FILE", help="New file for the key, mode 0600. Default: print the key.")
@_config_option
@place_options
@output_option
def add(name: str, path: str | None, config: str | None, url: str | None, data: str | None, output: str) -> None:
    """Add a token key to the user NAME, and show the key once.

    An older broker does not read a file of users that has a key. Exits 6 if there is no such user.
    """
    limits = ServerLimits() if config is None else load_settings(config).server
    descriptor = None if path is None else _new_file(path)
    try:
        with user_backend(url, data, limits, has_secret=True) as users:
            key_id, text = users.add_key(name)
        if descriptor is not None:
            _write(descriptor, text)
    except BaseException:
        if path is not None:
            Path(path).unlink(missing_ok=True)
        raise
    finally:
        if descriptor is not None:
            os.close(descriptor)
    if output == "json":
        print_json({"name": name, "id": key_id} | ({"key": text} if path is None else {"file": path}))
    else:
        print_words(text if path is None else f"added key {key_id} to user {name}: {path}")


@key.command("list", epilog="Example: ambermq user key list --data ./data")
@click.argument("name", required=False)
@place_options
@list_output_option
def list_keys(name: str | None, url: str | None, data: str | None, output: str) -> None:
    """List the ids of token keys, of all users or of NAME, never the keys.

    Exits 6 if there is no user NAME.
    """
    with user_backend(url, data, ServerLimits()) as users:
        rows = [row for row in users.rows() if name in (None, row["name"])]
    if name is not None and not rows:
        raise ToolError(f"no user {name!r}", code=ExitCode.NOT_FOUND)
    keys = [{"user": row["name"], "id": key_id} for row in rows for key_id in row.get("keys", ())]
    print_rows(keys, _COLUMNS, output)


@key.command("delete", epilog="Example: ambermq user key delete alice 3f2a9c01be77 --yes --data ./data")
@click.argument("name")
@click.argument("key_id", metavar="[ID]", required=False)
@click.option("--all", "is_all", is_flag=True, help="Delete all keys of the user.")
@destructive_options
@place_options
@output_option
def delete(
    name: str, key_id: str | None, is_all: bool, dry_run: bool, url: str | None, data: str | None, output: str
) -> None:
    """Delete the token key ID of the user NAME, and end its links.

    A running broker ends the links of its tokens within a second. Exits 6 if there is no such user.
    """
    if is_all == bool(key_id):
        raise click.UsageError("give the ID of a key, as `ambermq user key list` shows it, or --all")
    what = f"{'all keys' if is_all else f'key {key_id}'} of user {name}"
    if dry_run:
        known = _keys_of(name, url, data)
        _print_deletion(name, known, None if is_all else key_id, output)
        return
    confirm(lambda: f"This deletes {what}, and ends the links of their tokens")
    with user_backend(url, data, ServerLimits()) as users:
        users.delete_key(name, key_id or EVERY_KEY)
    if output == "json":
        print_json({"name": name, "deleted": True})
    else:
        print_words(f"deleted {what}")


def _print_deletion(name: str, known: list[str], key_id: str | None, output: str) -> None:
    """Print the keys that a deletion would remove, all of them without an id; raise ToolError if there is none."""
    if key_id is not None and key_id not in known:
        raise ToolError(f"user {name!r} has no key {key_id!r}", code=ExitCode.NOT_FOUND)
    ids = known if key_id is None else [key_id]
    if output == "json":
        print_json({"dry_run": True, "name": name, "ids": ids})
    else:
        print_words(f"would delete {len(ids)} keys of user {name}: {', '.join(ids) or 'none'}")


def _keys_of(name: str, url: str | None, data: str | None) -> list[str]:
    """Return the ids of a user's keys; raise ToolError if there is no such user."""
    with user_backend(url, data, ServerLimits()) as users:
        row = next((row for row in users.rows() if row["name"] == name), None)
    if row is None:
        raise ToolError(f"no user {name!r}", code=ExitCode.NOT_FOUND)
    return list(row.get("keys", ()))


def _new_file(path: str) -> int:
    """Return the descriptor of a new file of mode 0600: before the key is made, which is shown once."""
    try:
        return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        found = error.strerror or str(error)
        raise ToolError("cannot create the file for the key", where=path, found=found) from error


def _write(descriptor: int, text: str) -> None:
    os.write(descriptor, f"{text}\n".encode())
    os.fsync(descriptor)
