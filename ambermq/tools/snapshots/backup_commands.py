"""`ambermq snapshot export` and `ambermq snapshot restore`: backups, also of a running broker.

Rule 1: an export reads the directory at a limited rate and a low priority. It sends the broker one request at most, to
        take a snapshot first.
Rule 2: the error for a damaged backup says what to do; the command has changed nothing then.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any, Final

import click

from ambermq.engine.history.timestamps import iso_time
from ambermq.log.errors import DamageError, ForeignError
from ambermq.log.manifest.manifest import Manifest
from ambermq.log.manifest.vhost_manifest import DEFAULT_VHOST
from ambermq.tools.backup.export import export_backup
from ambermq.tools.backup.format import Table
from ambermq.tools.backup.reader import BackupReader
from ambermq.tools.backup.restore import check_target, restore_backup
from ambermq.tools.backup.verify import verify_backup
from ambermq.tools.client.broker_option import data_directory, data_option, directory_option, running_broker
from ambermq.tools.client.broker_url import BrokerUrl
from ambermq.tools.client.link_client import LinkClient
from ambermq.tools.client.management_client import SnapshotManagement
from ambermq.tools.past.low_priority import directory_to_read
from ambermq.tools.terminal.errors import ToolError
from ambermq.tools.terminal.exit_codes import ExitCode
from ambermq.tools.terminal.options import dry_run_option, renamed_option
from ambermq.tools.terminal.output import output_option, print_done
from ambermq.tools.terminal.progress import progress_bar, waiting_bar
from ambermq.tools.vhosts.backends import backend_of

__all__ = ["backup_values", "export", "restore", "verified_backup"]

_MIB: Final = 1 << 20


@click.command("export", epilog="Example: ambermq snapshot export before-upgrade ./before-upgrade.backup --data ./data")
@click.argument("name")
@click.argument("path")
@data_option
@click.option("--take", is_flag=True, help="Take the snapshot NAME first.")
@renamed_option(
    "--rate",
    "--disk-rate",
    "rate",
    type=click.IntRange(0),
    default=32,
    show_default=True,
    metavar="MIB",
    help="Maximum MiB a second; 0 is no limit.",
)
@output_option
def export(name: str, path: str, data: str | None, take: bool, rate: int, output: str) -> None:
    """Write the snapshot NAME and its messages to a backup at PATH.

    The backup is a directory if PATH is an empty directory or ends in /, else one file. The broker may run meanwhile.
    """
    directory = directory_to_read(data)
    if take:
        holder = running_broker(directory, served=data_directory(data))
        with LinkClient.connect(BrokerUrl.parse(holder.local_url)) as client, waiting_bar("snapshot"):
            SnapshotManagement(client).create(name, waits=True)
    as_directory = path.endswith("/") or Path(path).is_dir()
    with progress_bar() as progress:
        table = export_backup(
            directory,
            name,
            path,
            as_directory=as_directory,
            bytes_per_s=rate * _MIB,
            progress=partial(progress, "export"),
        )
    print_done(f"exported {table.name} to {path}: {_summary(table)}", backup_values(path, table), output, indent=True)


@click.command("restore", epilog="Example: ambermq snapshot restore ./before-upgrade.backup --data ./restored")
@click.argument("path")
@directory_option
@click.option(
    "--as-vhost", "vhost", default=DEFAULT_VHOST, show_default=True, metavar="V", help="Name of the new virtual host."
)
@dry_run_option
@output_option
def restore(path: str, data: str | None, vhost: str, dry_run: bool, output: str) -> None:
    """Create a log in the directory DIR from the backup at PATH.

    DIR must not hold a log. The command checks the whole backup first, and DIR holds all of it or nothing. Then start a
    broker on DIR. With --as-vhost the backup becomes a new virtual host of the broker on DIR, which may run.
    """
    if dry_run:
        _print_restore(path, data, vhost, output)
        return
    with _backup_errors(), _target(data, vhost) as directory:
        with progress_bar() as progress:
            stages = {"checking": partial(progress, "check"), "writing": partial(progress, "restore")}
            manifest = restore_backup(path, directory, **stages)
        with BackupReader(path) as reader:
            table = reader.table
    print_done(
        f"restored {table.name} to {directory}: {_summary(table)}",
        _restored(directory, table, manifest),
        output,
        indent=True,
    )


def _print_restore(path: str, data: str | None, vhost: str, output: str) -> None:
    """Check a backup and its target, and print what a restore would do."""
    directory = data_directory(data, must_exist=False)
    if vhost == DEFAULT_VHOST:
        check_target(directory)
    elif any(row["name"] == vhost for row in backend_of(data_directory(data)).rows()):
        raise ToolError(f"there is a virtual host {vhost!r} already", where=directory)
    table = verified_backup(path)
    values = {"dry_run": True, **backup_values(directory, table), "from_log_id": table.log_id}
    print_done(f"would restore {table.name} to {directory}: {_summary(table)}", values, output, indent=True)


def _target(data: str | None, vhost: str) -> AbstractContextManager[str]:
    """Return the context of the restore's target directory."""
    if vhost == DEFAULT_VHOST:
        return nullcontext(data_directory(data, must_exist=False))
    return backend_of(data_directory(data)).new(vhost)


def verified_backup(path: str) -> Table:
    """Check the backup at `path` and return its table; raise ToolError if it is damaged."""
    with _backup_errors(), progress_bar() as progress:
        return verify_backup(path, partial(progress, "verify"))


def backup_values(path: str, table: Table) -> dict[str, Any]:
    """Return the attributes of a backup."""
    return {
        "path": path,
        "name": table.name,
        "log_id": table.log_id,
        "end": table.end,
        "time": iso_time(table.time_us),
        "created": iso_time(table.created_us),
        "queues": table.queue_count,
        "messages": table.message_count,
        "records": sum(part.segment.record_count for part in table.parts if part.segment is not None),
        "bytes": sum(part.length for part in table.parts),
        "stored_bytes": sum(part.stored for part in table.parts),
    }


def _restored(directory: str, table: Table, manifest: Manifest) -> dict[str, Any]:
    values = backup_values(directory, table)
    return {**values, "log_id": manifest.log_id.hex(), "from_log_id": table.log_id}


def _summary(table: Table) -> str:
    stored_bytes = sum(part.stored for part in table.parts)
    return (
        f"{table.queue_count:,} queues, {table.message_count:,} messages, events below {table.end:,}, "
        f"{stored_bytes:,} bytes"
    )


@contextmanager
def _backup_errors() -> Iterator[None]:
    """Raise errors with advice for a backup: a repair of a log is no help."""
    try:
        yield
    except DamageError as error:
        raise ToolError(str(error), code=ExitCode.DAMAGED, advice="use another copy, or export it again") from error
    except ForeignError as error:
        advice = "use the version that wrote the backup, or another file"
        raise ToolError(str(error), advice=advice) from error
