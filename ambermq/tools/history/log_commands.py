"""`ambermq log`: read, verify, repair and compact the log in a data directory.

Rule 1. All commands but `repair` and `compact` only read. They are safe while a broker runs, and read what it has
        written until then. `compact` asks the broker to adopt the new segments.
Rule 2. `repair` needs the directory without a broker. With --dry-run it only prints its steps.
"""

import time
from collections.abc import Iterator, Mapping
from dataclasses import fields
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Final

import click

from ambermq import __version__
from ambermq.engine.events.registry import SKIPPABLE, TYPE_NAMES, least_release
from ambermq.engine.history.past import open_past
from ambermq.engine.records.reader import events_of
from ambermq.engine.snapshots.files import check_snapshot
from ambermq.log.errors import DamageError, LogError
from ambermq.log.format.batch import Batch
from ambermq.log.read.log_reader import LogReader
from ambermq.log.recovery import repair as repairs
from ambermq.log.recovery.verify import Report, verify
from ambermq.tools.client.broker_option import data_option, vhost_directory
from ambermq.tools.history.event_text import EVENT_TYPES, Line, event_line, type_of
from ambermq.tools.past.background_storage import open_log, storage_of
from ambermq.tools.past.id_names import IdNames
from ambermq.tools.past.low_priority import ReadingGroup, directory_to_read
from ambermq.tools.past.moment_option import WHEN_HELP, parse_offset
from ambermq.tools.past.past_access import moment_of
from ambermq.tools.past.past_names import names_in
from ambermq.tools.terminal.errors import ToolError
from ambermq.tools.terminal.exit_codes import ExitCode
from ambermq.tools.terminal.options import renamed_option
from ambermq.tools.terminal.output import (
    list_output_option,
    output_option,
    print_json,
    print_line,
    print_rows,
    print_values,
    stream_output_option,
)
from ambermq.tools.terminal.progress import progress_bar

__all__ = ["log", "segment_rows"]

_SEGMENT_COLUMNS: Final = ("file", "state", "base_offset", "next_offset", "batches", "records", "bytes")
_FOLLOW_SECONDS: Final = 0.5
_LAZY: Final = {
    "compact": (
        "ambermq.tools.compaction.command:compact",
        "Rewrite the log without old history; live messages stay.",
    ),
    "export": (
        "ambermq.tools.spark.export_command:export_parquet",
        "Write the events as Parquet files by date and queue.",
    ),
    "query": (
        "ambermq.tools.spark.query_command:query",
        "Run a Spark SQL query over the events of log and archives.",
    ),
}


@click.group(cls=ReadingGroup, lazy=_LAZY, epilog="Example: ambermq log dump --data ./data --type published --limit 20")
def log() -> None:
    """Read, verify, repair and compact the log in a data directory."""


@log.command("segments", epilog="Example: ambermq log segments --data ./data --output json")
@data_option
@list_output_option
def segments(data: str | None, output: str) -> None:
    """List the segment files with offsets, records and sizes."""
    with open_log(directory_to_read(data)) as reader:
        print_rows(segment_rows(reader), _SEGMENT_COLUMNS, output)


def segment_rows(reader: LogReader) -> Iterator[dict[str, Any]]:
    """Yield a row for each segment."""
    for info in reader.segments():
        batches, records = reader.counts(info)
        yield {
            "file": Path(info.path).name,
            "state": str(info.state),
            "base_offset": info.base_offset,
            "next_offset": info.next_offset,
            "batches": batches,
            "records": records,
            "bytes": info.size,
            "path": info.path,
        }


@log.command("dump", epilog="Example: ambermq log dump --data ./data --queue orders --since 0 --output ndjson")
@data_option
@renamed_option("--from", "--since", "first", metavar="WHEN", help=f"First event. {WHEN_HELP}")
@renamed_option("--to", "--until", "last", metavar="WHEN", help="Last event, written as for --since.")
@click.option(
    "--type", "types", multiple=True, type=click.Choice(EVENT_TYPES), help="Only events of this type; may be repeated."
)
@click.option("--queue", metavar="NAME", help="Only events of this queue.")
@click.option("--limit", type=click.IntRange(1), metavar="N", help="Maximum number of events.")
@click.option("--follow", is_flag=True, help="Print new events until interrupted.")
@stream_output_option
def dump(
    data: str | None,
    first: str | None,
    last: str | None,
    types: tuple[str, ...],
    queue: str | None,
    limit: int | None,
    follow: bool,
    output: str,
) -> None:
    """Print every event, one a line.

    A line has offset, time in UTC, type and what happened. --output json or ndjson prints NDJSON.
    """
    directory = directory_to_read(data)
    begin, end = _offset(directory, first, is_first=True), _offset(directory, last, is_first=False)
    if begin is not None and end is not None and end < begin:
        raise ToolError("--until lies before --since", where=f"{begin} to {end}", code=ExitCode.USAGE)
    lines = _lines(directory, begin, end, types=frozenset(types), queue=queue, follow=follow)
    try:
        for line in islice(lines, limit):
            if output != "table":
                print_json(line.as_json())
            else:
                print_line(str(line))
    except KeyboardInterrupt:
        if not follow:
            raise


def _offset(directory: str, text: str | None, *, is_first: bool) -> int | None:
    """Return the offset of a moment: that of the first event from it on, or of the last one up to it."""
    offset = None if text is None else parse_offset(text)
    if text is None or offset is not None:
        return offset
    with open_past(directory, storage=storage_of(directory)) as past:
        found, time_us = moment_of(past, text)
        return found + 1 if is_first and past.time_at(found) < time_us else found


def _lines(
    directory: str, first: int | None, last: int | None, *, types: frozenset[str], queue: str | None, follow: bool
) -> Iterator[Line]:
    """Yield the lines of the events that match; all events are read, since earlier ones have the names."""
    begin, names = _begin(directory, last if first is None else first)
    first = begin if first is None else first
    for batch in _batches(directory, begin, follow=follow):
        for event in events_of(batch):
            names.add(event)
            if last is not None and event.offset > last:
                return
            if (
                event.offset >= first
                and (not types or type_of(event) in types)
                and (queue is None or queue in names.queues_of(event))
            ):
                yield event_line(event, names)


def _begin(directory: str, offset: int | None) -> tuple[int, IdNames]:
    """Return the offset at which history begins, and the names at that moment; PastError if `offset` lies below."""
    with open_past(directory, storage=storage_of(directory)) as past:
        horizon = past.horizon.offset
        if not horizon:
            return 0, IdNames()
        if offset is not None and offset < horizon:
            past.events(offset, offset)
        return horizon, names_in(past.state_at(horizon - 1))


def _batches(directory: str, next_offset: int, *, follow: bool) -> Iterator[Batch]:
    while True:
        with open_log(directory) as reader:
            for readable in reader.batches(next_offset):
                next_offset = readable.batch.next_offset
                yield readable.batch
        if not follow:
            return
        time.sleep(_FOLLOW_SECONDS)


@log.command("verify", epilog="Example: ambermq log verify --data ./data")
@data_option
@output_option
def verify_log(data: str | None, output: str) -> None:
    """Check every checksum, offset and index, and the manifest.

    Exits 5 at the first damage and prints its file and position. crcmod-plus, a second implementation of CRC-32C,
    computes samples of the checksums, such as those of each 16th batch. If the two disagree, the command says so.

    `least_release` is the first release of AmberMQ that can open the log.
    """
    directory = directory_to_read(data)
    storage = storage_of(directory)
    with progress_bar() as progress:
        report = verify(
            directory,
            partial(progress, "verify"),
            check_snapshot=partial(check_snapshot, storage, directory),
            storage=storage,
        )
    print_values(_report_values(report), output)
    if report.damage is not None:
        raise _damaged(report.damage)


def _report_values(report: Report) -> dict[str, Any]:
    names = (field.name for field in fields(report) if field.name != "record_types")
    values = {name: getattr(report, name) for name in names}
    values["least_release"] = _least_release(report.record_types)
    return {name: str(value) if isinstance(value, LogError) else value for name, value in values.items()}


def _least_release(types: Mapping[int, int]) -> str:
    """Return the first release that can read records of these types; later ones than this program's are listed."""
    unknown = sorted(one for one, flags in types.items() if one not in TYPE_NAMES and not flags & SKIPPABLE)
    if unknown:
        return f"later than {__version__}: record types {', '.join(map(str, unknown))}"
    return least_release(types)


def _damaged(damage: LogError) -> ToolError:
    if isinstance(damage, DamageError):
        advice = "stop the broker and run `ambermq log repair --dry-run`"
        if damage.file.endswith(".index"):
            advice = "move it away: the log is whole without it, and the broker builds it again at its next start"
        return ToolError(str(damage), advice=advice, code=ExitCode.DAMAGED)
    return ToolError(str(damage), code=ExitCode.DAMAGED)


@log.command("repair", epilog="Example: ambermq log repair --data ./data --dry-run")
@data_option
@click.option("--dry-run", is_flag=True, help="Only print what a repair would do.")
@output_option
def repair(data: str | None, dry_run: bool, output: str) -> None:
    """Move damage to DIR/aside so that the log opens again.

    The broker must be stopped. The command never writes into a file of the log. It does nothing if the log opens: if
    only the body of a message is damaged, the broker itself removes the message.
    """
    directory = vhost_directory(data)
    found = repairs.plan(directory) if dry_run else repairs.apply(directory)
    faults, steps = [str(fault) for fault in found.faults], found.steps()
    if output == "json":
        lost = [{"first": one.first_offset, "end": one.next_offset} for one in found.lost]
        print_json({"dry_run": dry_run, "faults": faults, "steps": steps, "lost": lost}, indent=True)
        return
    for fault in faults:
        print_line(f"damage   {fault}")
    for step in steps:
        print_line(f"{'would   ' if dry_run else 'done    '} {step}")
    if not found.is_needed:
        print_line("nothing to repair: the log opens")
