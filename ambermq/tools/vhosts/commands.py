"""`ambermq vhost`: list, show, create, copy, reset and delete virtual hosts.

The commands send requests to a running broker. Without one they change the files of the data directory.
"""

from collections.abc import Mapping
from typing import Any, Final

import click

from ambermq.engine.model.vhost_mode import VhostMode, mode_named
from ambermq.log.manifest.vhost_manifest import check_name
from ambermq.tools.client.broker_option import broker_url, data_directory, place_options
from ambermq.tools.client.named_place import named_place
from ambermq.tools.terminal.errors import ToolError, TranslatingGroup
from ambermq.tools.terminal.options import confirm, destructive_options, dry_run_option
from ambermq.tools.terminal.output import list_output_option, output_option, print_done, print_rows, print_values
from ambermq.tools.vhosts.backends import RunningVhosts, VhostBackend, backend_of
from ambermq.tools.vhosts.copy import copy_log

__all__ = ["vhost"]

_RUNNING_COLUMNS: Final = ("name", "mode", "connections", "queues", "messages", "bytes")
_STOPPED_COLUMNS: Final = ("name", "mode", "directory")


@click.group(cls=TranslatingGroup, epilog="Example: ambermq vhost copy default rehearsal --data ./data")
def vhost() -> None:
    """List, show, create, copy, reset and delete virtual hosts.

    A virtual host is a broker within the broker, with a log of its own.
    """


@vhost.command("list", epilog="Example: ambermq vhost list --data ./data --output json")
@place_options
@list_output_option
def list_vhosts(url: str | None, data: str | None, output: str) -> None:
    """List all virtual hosts, the default one first.

    Without a running broker the list also has the directories of their logs.
    """
    backend = _backend(url, data)
    columns = _RUNNING_COLUMNS if isinstance(backend, RunningVhosts) else _STOPPED_COLUMNS
    print_rows(backend.rows(), columns, output)


@vhost.command("show", epilog="Example: ambermq vhost show rehearsal --data ./data")
@click.argument("name")
@place_options
@output_option
def show(name: str, url: str | None, data: str | None, output: str) -> None:
    """Show all attributes of the virtual host NAME.

    Without a running broker the command reads its log. Exits 6 if there is no such virtual host.
    """
    print_values(_backend(url, data).row(name), output)


@vhost.command("create", epilog="Example: ambermq vhost create bare --mode advanced --data ./data")
@click.argument("name")
@click.option(
    "--mode",
    type=click.Choice([mode.text for mode in VhostMode]),
    default=VhostMode.AUTOMATIC.text,
    show_default=True,
    help="Initial wiring: predeclared, or none.",
)
@place_options
@output_option
def create(name: str, mode: str, url: str | None, data: str | None, output: str) -> None:
    """Create the virtual host NAME without queues.

    An advanced one has no muxers QUEUE and TOPIC, and no address creates a queue on it: all wiring is declared. Exits 1
    if a virtual host has the name.
    """
    check_name(name)
    vhost_mode = mode_named(mode)
    _backend(url, data).create(name, vhost_mode)
    text = f"created {name}" + (f" in {mode} mode" if vhost_mode else "")
    print_done(text, {"name": name, "created": True, "mode": mode}, output)


@vhost.command("copy", epilog="Example: ambermq vhost copy default rehearsal --data ./data")
@click.argument("source")
@click.argument("name")
@dry_run_option
@place_options
@output_option
def copy(source: str, name: str, dry_run: bool, url: str | None, data: str | None, output: str) -> None:
    """Copy the virtual host SOURCE, at one moment, to a new one: NAME.

    All virtual hosts are served meanwhile. The command reads the log's files, so it needs --data. It copies no links.
    Messages that were acquired are available again in the copy.
    """
    check_name(name)
    backend = _backend(url, data)
    if any(row["name"] == name for row in backend.rows()):
        raise ToolError(f"there is a virtual host {name!r} already")
    if dry_run:
        row = dict(backend.row(source))
        print_done(
            f"would copy {_counted(row)} to {name}", {"dry_run": True, **row, "name": name, "source": source}, output
        )
        return
    with backend.snapshot(source) as (directory, snapshot), backend.new(name) as target:
        table = copy_log(directory, snapshot, target)
    counts = {"queues": table.queue_count, "messages": table.message_count, "end": table.end}
    summary = f"{table.queue_count:,} queues, {table.message_count:,} messages, events below {table.end:,}"
    print_done(f"copied {source} to {name}: {summary}", {"name": name, "source": source, **counts}, output)


@vhost.command("reset", epilog="Example: ambermq vhost reset rehearsal --yes --data ./data")
@click.argument("name")
@destructive_options
@place_options
@output_option
def reset(name: str, dry_run: bool, url: str | None, data: str | None, output: str) -> None:
    """Remove all queues and messages of the virtual host NAME.

    Its links end. Its history stays.
    """
    backend = _backend(url, data)
    if dry_run:
        row = dict(backend.row(name))
        print_done(f"would reset {_counted(row)}", {"dry_run": True, **row}, output)
        return
    confirm(lambda: f"This removes all queues and messages of {_counted(backend.row(name))}")
    counts = dict(backend.reset(name))
    summary = f"{counts.get('queues', 0):,} queues and {counts.get('messages', 0):,} messages removed"
    print_done(f"reset {name}: {summary}", {"name": name, **counts}, output)


@vhost.command("delete", epilog="Example: ambermq vhost delete rehearsal --force --yes --data ./data")
@click.argument("name")
@click.option("--force", is_flag=True, help="Close its connections. Default: refuse if it has any.")
@destructive_options
@place_options
@output_option
def delete(name: str, force: bool, dry_run: bool, url: str | None, data: str | None, output: str) -> None:
    """Delete the virtual host NAME with its log and snapshots.

    Its history goes too. Exits 6 if there is no such virtual host.
    """
    backend = _backend(url, data)
    if dry_run:
        row = dict(backend.row(name))
        if row.get("connections") and not force:
            raise ToolError(f"{name} has {row['connections']:,} connections", advice="give --force")
        print_done(f"would delete {_counted(row)}", {"dry_run": True, **row}, output)
        return
    confirm(lambda: f"This deletes the log and all snapshots of {_counted(backend.row(name))}")
    backend.delete(name, force=force)
    print_done(f"deleted {name}", {"name": name, "deleted": True}, output)


def _counted(row: Mapping[str, Any]) -> str:
    return f"{row['name']} with {row.get('queues', 0):,} queues and {row.get('messages', 0):,} messages"


def _backend(url: str | None, data: str | None) -> VhostBackend:
    place = named_place(url, data)
    if place.data:
        return backend_of(data_directory(place.data))
    return RunningVhosts(broker_url(url, data), None)
