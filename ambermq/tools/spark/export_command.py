"""`ambermq log export`: the history of a data directory as Parquet files by date and queue.

Rule 1. A task reads some neighbouring segments and writes files of its own. Only the names of files pass through Spark,
so the runner without Spark writes the same rows.
Rule 2. The target must be empty: the files of an unfinished export must not mix with those of the next one.
Rule 3. Directory and target can be any place that fsspec reaches.
"""

import secrets
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import click

from ambermq.log.manifest.vhost_manifest import DEFAULT_VHOST
from ambermq.tools.client.broker_option import data_directory, directory_option
from ambermq.tools.dataset.file_systems import is_remote, place_of
from ambermq.tools.dataset.s3_url import shown_url
from ambermq.tools.past.moment_option import WHEN_HELP
from ambermq.tools.terminal.errors import ToolError
from ambermq.tools.terminal.exit_codes import ExitCode
from ambermq.tools.terminal.output import output_option, print_values

__all__ = ["RUNNERS", "export_history", "export_parquet", "history_directory"]

RUNNERS: Final = ("spark", "local")
_GROUP_BYTES: Final = 256 << 20
"""The bytes of segments for one task: a compromise between few files and many tasks."""
_VHOST_HELP: Final = "Virtual host, or * for all of them."


@dataclass(frozen=True, slots=True)
class _Share:
    """The share of one task in an export."""

    segments: tuple[Any, ...]
    """The HistorySegments that it reads."""
    all_segments: tuple[Any, ...]
    """All segments of the log, for names and the pieces of messages."""
    known: dict[int, tuple[str, int]]
    """The result of HistoryLog.known()."""
    selection: Any
    """The Selection of events."""
    columns: tuple[str, ...]
    """The columns that it writes."""
    target: str
    """The target, a path or URL."""
    attempt: str
    """The prefix of its file names."""


def history_directory(data: str | None) -> str:
    """Return the directory or URL that the option or the environment names; ToolError if there is none."""
    return data if data and is_remote(data) else data_directory(data)


@click.command("export", epilog="Example: ambermq log export --data ./data --parquet ./past --since 5 --runner local")
@directory_option
@click.option("--vhost", metavar="V", default=DEFAULT_VHOST, show_default=True, help=_VHOST_HELP)
@click.option("--parquet", "target", required=True, metavar="DIR", help="Target: an empty directory or a URL.")
@click.option("--since", metavar="WHEN", default="", help=f"Only events from this moment on. {WHEN_HELP}")
@click.option("--until", metavar="WHEN", default="", help="Only events before this moment, written as for --since.")
@click.option("--contents", is_flag=True, help="Write headers, properties and bodies too.")
@click.option(
    "--runner",
    type=click.Choice(RUNNERS),
    default="spark",
    show_default=True,
    help="Spark, or one process on this machine.",
)
@click.option("--master", default="local[*]", show_default=True, metavar="URL", help="Spark master.")
@output_option
def export_parquet(
    data: str | None,
    vhost: str,
    target: str,
    since: str,
    until: str,
    contents: bool,
    runner: str,
    master: str,
    output: str,
) -> None:
    """Write the events as Parquet files by date and queue.

    A row is one message of one event.
    """
    from ambermq.tools.spark.session import check_packages  # noqa: PLC0415 - what only these commands need

    check_packages("pyarrow", "numpy")
    summary = export_history(
        history_directory(data),
        target if is_remote(target) else place_of(target).path,
        vhost=vhost,
        since=since,
        until=until,
        contents=contents,
        run=_run_here if runner == "local" else lambda shares: _run_on_spark(shares, master),
    )
    print_values(summary, output)


def export_history(
    directory: str,
    target: str,
    *,
    vhost: str,
    since: str,
    until: str,
    contents: bool,
    run: Callable[[Sequence[_Share]], list[Any]],
) -> dict[str, Any]:
    """Export the history of a directory and return a summary; `run` gets the shares and returns their files.

    Raises ToolError, DamageError, OSError.
    """
    from ambermq.tools.dataset.arrow_table import selection_between  # noqa: PLC0415
    from ambermq.tools.dataset.log_segments import open_histories  # noqa: PLC0415 - needs pyarrow, which was asked for by now
    from ambermq.tools.dataset.schema import CONTENT_COLUMNS, EVENT_COLUMNS  # noqa: PLC0415

    selection = selection_between(since, until, now_us=time.time_ns() // 1000)
    columns = (*EVENT_COLUMNS, *(CONTENT_COLUMNS if contents else ()))
    with open_histories(directory, vhost) as logs:
        _check_empty(target)
        _print_horizons(logs)
        attempt = secrets.token_hex(4)
        shares = [
            _Share(group, log.segments, log.known(), wanted, columns, target, f"{attempt}-{number}-{at}")
            for number, log in enumerate(logs)
            for wanted in (replace(selection, first=max(selection.first, log.horizon)),)
            for at, group in enumerate(_groups(log.segments, wanted))
        ]
        files = run(shares) if shares else []
    return {
        "target": target,
        "events": sum(one.rows for one in files),
        "files": len(files),
        "bytes": sum(one.size for one in files),
    }


def _check_empty(target: str) -> None:
    place = place_of(target)
    if place.storage.exists(place.path) and place.storage.listdir(place.path):
        raise ToolError(
            "the target is not empty",
            where=shown_url(target),
            expected="a new directory",
            advice="name another one: rows of an earlier export would be there twice",
            code=ExitCode.USAGE,
        )


def _print_horizons(logs: Sequence[Any]) -> None:
    for log in logs:
        if log.horizon:
            earlier = "archived as Parquet already" if log.manifest.archive else "gone"
            note = (
                f"{log.directory} was compacted: history begins at offset {log.horizon}; earlier events are {earlier}"
            )
            sys.stderr.write(f"note: {note}\n")


def _groups(segments: Sequence[Any], selection: Any) -> list[tuple[Any, ...]]:
    """Return the segments that may hold events of a selection, in groups of neighbours."""
    from ambermq.tools.dataset.segment_selection import possible_segments  # noqa: PLC0415 - as in export_history

    groups: list[list[Any]] = []
    for segment in possible_segments(segments, selection):
        if groups and sum(one.size for one in groups[-1]) + segment.size <= _GROUP_BYTES:
            groups[-1].append(segment)
        else:
            groups.append([segment])
    return [tuple(group) for group in groups]


def _write_share(share: _Share) -> list[Any]:
    """Write the files of one share and return them."""
    from ambermq.tools.dataset.arrow_table import event_columns  # noqa: PLC0415 - as in export_history
    from ambermq.tools.dataset.parquet_files import write_events  # noqa: PLC0415

    batches = (
        batch
        for segment in share.segments
        for batch in event_columns(
            segment, share.columns, segments=share.all_segments, known=share.known, selection=share.selection
        )
    )
    return list(write_events(batches, share.columns, share.target, attempt=share.attempt))


def _run_here(shares: Sequence[_Share]) -> list[Any]:
    return [file for share in shares for file in _write_share(share)]


def _run_on_spark(shares: Sequence[_Share], master: str) -> list[Any]:
    from ambermq.tools.spark.errors import translating_spark  # noqa: PLC0415 - as in export_parquet
    from ambermq.tools.spark.session import open_session  # noqa: PLC0415

    with open_session(master, name="ambermq log export") as spark, translating_spark():
        return spark.sparkContext.parallelize(list(shares), len(shares)).flatMap(_write_share).collect()
