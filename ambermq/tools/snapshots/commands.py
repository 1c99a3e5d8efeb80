"""`ambermq snapshot`: take, list, show, verify, delete and compare snapshots.

Rule 1: `create` and `delete` send a request to the running broker; `delete` also works on a stopped broker's directory.
Rule 2: the other commands read the directory, with or without a running broker. They pin the files that they read.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, Final

import click

from ambermq.engine.history.state_diff import Change, Entries, changes_between
from ambermq.engine.history.timestamps import iso_time
from ambermq.engine.history.updatable_settings import values_text
from ambermq.engine.model.state import State
from ambermq.engine.snapshots.files import load_snapshot
from ambermq.engine.snapshots.retention import base_of
from ambermq.log.errors import DamageError, LogError
from ambermq.log.format.checksum_pair import SampledChecksum
from ambermq.log.manifest.generation_pins import GenerationPins
from ambermq.log.manifest.manifest import (
    Manifest,
    Snapshot,
    commit,
    forget_removed,
    forget_snapshots,
    load,
    snapshot_path,
)
from ambermq.log.read.log_reader import LogReader
from ambermq.log.recovery.recovery import lock_path
from ambermq.log.storage.disk import DiskStorage
from ambermq.tools.client.broker_option import (
    broker_of_directory,
    broker_options,
    broker_url,
    data_option,
    log_directory,
)
from ambermq.tools.client.broker_url import BrokerUrl
from ambermq.tools.client.link_client import LinkClient
from ambermq.tools.client.management_client import SnapshotManagement
from ambermq.tools.client.named_place import named_directory, named_place
from ambermq.tools.past.background_storage import open_log
from ambermq.tools.past.low_priority import directory_to_read
from ambermq.tools.past.snapshot_files import SNAPSHOT_ADVICE, snapshot_named, snapshot_state
from ambermq.tools.snapshots.backup_commands import backup_values, export, restore, verified_backup
from ambermq.tools.terminal.errors import ToolError, TranslatingGroup
from ambermq.tools.terminal.exit_codes import ExitCode
from ambermq.tools.terminal.options import confirm, destructive_options
from ambermq.tools.terminal.output import (
    list_output_option,
    output_option,
    print_json,
    print_line,
    print_rows,
    print_values,
)
from ambermq.tools.terminal.progress import progress_bar, waiting_bar

__all__ = ["snapshot"]

_COLUMNS: Final = ("name", "end", "time", "created", "bytes", "automatic")
_VERIFY_COLUMNS: Final = ("name", "end", "queues", "messages", "bytes", "whole")
_DIFF_COLUMNS: Final = ("what", "name", "change", "depth_before", "depth_after", "came", "went", "counters")


@click.group(cls=TranslatingGroup, epilog="Example: ambermq snapshot create --name before-upgrade --data ./data")
def snapshot() -> None:
    """Take, list, verify, compare, export and restore snapshots.

    A snapshot holds all queues at one moment.
    """


@snapshot.command("create", epilog="Example: ambermq snapshot create --name before-upgrade --data ./data")
@click.option("--name", metavar="N", help="Name of the snapshot. Default: the broker chooses one.")
@click.option(
    "--wait/--no-wait", default=True, show_default=True, help="Wait until the snapshot is written and durable."
)
@broker_options
@output_option
def create(name: str | None, wait: bool, url: str | None, data: str | None, output: str) -> None:
    """Take a snapshot of all queues of a running broker.

    The broker goes on with its work meanwhile.
    """
    with _management(url, data) as management, waiting_bar("snapshot"):
        values = management.create(name, waits=wait)
    row = _shown(values)
    if not values["room"]:
        click.echo("note: the maximum number of snapshots is reached; delete some to get automatic ones", err=True)
    if output == "json":
        print_json(row, indent=True)
    elif wait:
        print_line(f"took {row['name']}: events below {row['end']:,}, {row['bytes']:,} bytes")
    else:
        print_line(f"taking {row['name']}: events below {row['end']:,}")


@snapshot.command("list", epilog="Example: ambermq snapshot list --data ./data --output json")
@data_option
@list_output_option
def list_snapshots(data: str | None, output: str) -> None:
    """List all snapshots in the order of their moments.

    A broker starts from the last one.
    """
    manifest = _manifest(log_directory(data))
    print_rows([_row(one) for one in manifest.snapshots], _COLUMNS, output)


@snapshot.command("show", epilog="Example: ambermq snapshot show before-upgrade --data ./data")
@click.argument("name")
@data_option
@output_option
def show(name: str, data: str | None, output: str) -> None:
    """Show what the snapshot NAME holds.

    Exits 6 if there is no such snapshot.
    """
    directory = directory_to_read(data)
    with open_log(directory) as reader:
        one = snapshot_named(reader.manifest, name, directory)
        values = _row(one) | _contents(snapshot_state(reader, one))
        values |= {"begins_history": one == base_of(reader.manifest), "file": snapshot_path(directory, one.file_id)}
    print_values(values, output)


@snapshot.command("verify", epilog="Example: ambermq snapshot verify before-upgrade --data ./data")
@click.argument("name", required=False)
@data_option
@list_output_option
def verify(name: str | None, data: str | None, output: str) -> None:
    """Check every byte of a snapshot, of all of them, or of a backup.

    NAME is the name of a snapshot or the path of a backup. Exits 5 at damage and prints file and position. Exits 1 if a
    newer version wrote the file; the others are checked all the same. crcmod-plus, a second implementation of CRC-32C,
    computes samples of the checksums.
    """
    if name is not None and _means_backup(name, data):
        print_values(backup_values(name, verified_backup(name)), output)
        return
    directory = directory_to_read(data)
    faults: list[LogError] = []
    with open_log(directory) as reader:
        chosen = reader.manifest.snapshots if name is None else (snapshot_named(reader.manifest, name, directory),)
        with progress_bar() as progress:
            rows = []
            for number, one in enumerate(chosen):
                progress("verify", number, len(chosen))
                rows.append(_verified(reader, directory, one, faults))
    print_rows(rows, _VERIFY_COLUMNS, output)
    if faults:
        damage = next((fault for fault in faults if isinstance(fault, DamageError)), None)
        code = ExitCode.FAILED if damage is None else ExitCode.DAMAGED
        raise ToolError(str(damage or faults[0]), advice=SNAPSHOT_ADVICE, code=code)


@snapshot.command("delete", epilog="Example: ambermq snapshot delete before-upgrade --yes --data ./data")
@click.argument("name")
@destructive_options
@broker_options
@output_option
def delete(name: str, dry_run: bool, url: str | None, data: str | None, output: str) -> None:
    """Delete the snapshot NAME.

    Exits 6 if there is no such snapshot, and 1 if the history begins with it.
    """
    directory = named_place(url, data).data
    if dry_run:
        _print_deletion(directory or None, name, output)
        return
    confirm(lambda: f"This deletes the snapshot {name}")
    if directory and broker_of_directory(directory) is None:
        _delete_stopped(log_directory(directory), name)
    else:
        with _management(url, data) as management:
            management.delete(name)
    if output == "json":
        print_json({"name": name, "deleted": True})
    else:
        print_line(f"deleted {name}")


@snapshot.command("diff", epilog="Example: ambermq snapshot diff before-upgrade nightly --data ./data")
@click.argument("before")
@click.argument("after")
@data_option
@list_output_option
def diff(before: str, after: str, data: str | None, output: str) -> None:
    """Show what differs between the snapshots BEFORE and AFTER.

    It shows wiring, queues, counters, and the messages that only one of them holds.
    """
    directory = directory_to_read(data)
    with open_log(directory) as reader:
        manifest = reader.manifest
        old, new = (snapshot_state(reader, snapshot_named(manifest, name, directory)) for name in (before, after))
    changes = changes_between(old, new)
    is_table = output == "table"
    print_rows([_values(one) | _short(one) if is_table else _values(one) for one in changes], _DIFF_COLUMNS, output)


snapshot.add_command(export)
snapshot.add_command(restore)


@contextmanager
def _management(url: str | None, data: str | None) -> Iterator[SnapshotManagement]:
    with LinkClient.connect(BrokerUrl.parse(broker_url(url, data))) as client:
        yield SnapshotManagement(client)


def _means_backup(name: str, data: str | None) -> bool:
    """Return whether a name is the path of a backup: it exists, and it has the form of a path or names no snapshot."""
    if not Path(name).exists():
        return False
    if "/" in name or name.endswith(".backup") or not named_directory(data).data:
        return True
    return all(one.name != name for one in _manifest(log_directory(data)).snapshots)


def _manifest(directory: str) -> Manifest:
    manifest = load(DiskStorage(), directory)
    assert manifest is not None, "log_directory checks that there is one"
    return manifest


def _row(one: Snapshot) -> dict[str, Any]:
    return {
        "name": one.name,
        "end": one.end,
        "time": iso_time(one.time_us),
        "created": iso_time(one.created_us),
        "bytes": one.size,
        "automatic": one.is_automatic,
    }


def _shown(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the row of a snapshot from its attributes in `$management`."""
    times = {"time": iso_time(values["time_us"]), "created": iso_time(values["created_us"])}
    attributes = {name: values[name] for name in ("name", "end", "bytes")}
    return attributes | times | {"automatic": values["is_automatic"]}


def _contents(state: State) -> dict[str, Any]:
    queues = list(state.queues.values())
    return {
        "queues": len(queues),
        "messages": sum(queue.depth for queue in queues),
        "acquired": sum(queue.acquired_count for queue in queues),
        "message_bytes": sum(queue.size for queue in queues),
        "muxers": len(state.muxers),
        "producers": len(state.producers),
        "consumers": len(state.consumers),
        "epoch": state.epoch,
    }


def _verified(reader: LogReader, directory: str, one: Snapshot, faults: list[LogError]) -> dict[str, Any]:
    row = _row(one) | {"whole": False}
    try:
        state = load_snapshot(reader.storage, directory, reader.manifest, one, checksum=SampledChecksum())
        return row | _contents(state) | {"whole": True}
    except LogError as fault:
        faults.append(fault)
        return row | {"fault": str(fault)}


def _print_deletion(data: str | None, name: str, output: str) -> None:
    """Print what a deletion would remove; the files of the directory tell it."""
    if data is None:
        raise click.UsageError("--dry-run needs --data, the broker's directory")
    directory = log_directory(data)
    manifest = _manifest(directory)
    one = snapshot_named(manifest, name, directory)
    if one == base_of(manifest):
        raise _begins_history(name, directory)
    if output == "json":
        print_json({"dry_run": True, **_row(one)})
    else:
        print_line(f"would delete {name}: events below {one.end:,}, {one.size:,} bytes")


def _begins_history(name: str, directory: str) -> ToolError:
    return ToolError(f"the snapshot {name!r} cannot be deleted: history begins with it", where=directory)


def _delete_stopped(directory: str, name: str) -> None:
    """Delete a snapshot of a stopped broker, and its file if no reader has pinned it."""
    storage = DiskStorage()
    lock = storage.lock(lock_path(directory))
    try:
        manifest = _manifest(directory)
        one = snapshot_named(manifest, name, directory)
        if one == base_of(manifest):
            raise _begins_history(name, directory)
        file_ids = frozenset({one.file_id})
        commit(storage, directory, partial(forget_snapshots, file_ids=file_ids))
        if one.file_id not in GenerationPins(storage, directory).sweep():
            with suppress(FileNotFoundError):
                storage.unlink(snapshot_path(directory, one.file_id))
            commit(storage, directory, partial(forget_removed, file_ids=file_ids))
    finally:
        lock.release()


def _values(change: Change) -> dict[str, Any]:
    """Return the JSON object of a change."""
    values: dict[str, Any] = {"what": change.what, "name": change.name, "change": change.change}
    if change.what != "route":
        values["id"] = change.id
    if change.what == "queue":
        values |= {
            "depth_before": change.depth_before,
            "depth_after": change.depth_after,
            "came": _entries(change.came),
            "went": _entries(change.went),
            "counters": change.counters,
        }
    if change.options:
        values["options"] = {name: {"before": old, "after": new} for name, (old, new) in change.options.items()}
    return values


def _entries(entries: Entries) -> dict[str, Any]:
    ranges = [{"first": first, "last": last} for first, last in entries.ranges]
    return {"count": entries.count, "ranges": ranges}


def _short(change: Change) -> dict[str, Any]:
    """Return the cells of a change in a table."""
    differences = [f"{name} {difference:+,}" for name, difference in change.counters.items()]
    counters = ", ".join([*differences, values_text(change.options)] if change.options else differences)
    if change.what != "queue":
        return {"counters": counters} if counters else {}
    return {"came": _summed(change.came), "went": _summed(change.went), "counters": counters}


def _summed(entries: Entries) -> str:
    if not entries.count:
        return "-"
    return f"{entries.count:,} in [{entries.ranges[0][0]:,}, {entries.last_offset:,}]"
