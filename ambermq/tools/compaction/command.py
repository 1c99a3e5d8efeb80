"""`ambermq log compact`: rewrite the log without old history; live messages stay.

Rule 1. A running broker adopts the new segments on request. Without a broker the command opens the engine for the time
of the job.
Rule 2. Standard output has only the outcome. The progress goes to standard error if that is a terminal.
"""

import errno
import os
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict, replace
from functools import partial
from typing import Any, Final

import click

from ambermq.engine.compaction.plan import History
from ambermq.engine.history.timestamps import iso_time
from ambermq.log.storage.interface import Storage
from ambermq.tools.client.broker_option import (
    broker_of_directory,
    current_vhost,
    data_option,
    log_directory,
)
from ambermq.tools.client.broker_url import BrokerUrl
from ambermq.tools.client.named_place import URL_VARIABLE
from ambermq.tools.client.token_option import read_token, token_option
from ambermq.tools.compaction.commit_target import broker_for
from ambermq.tools.compaction.job import run_compaction
from ambermq.tools.compaction.local_runner import LocalRunner
from ambermq.tools.compaction.preview import Outcome, preview_compaction
from ambermq.tools.compaction.runner import Runner
from ambermq.tools.past.background_storage import limited_storage
from ambermq.tools.past.moment_option import parse_duration
from ambermq.tools.spark.session import check_packages
from ambermq.tools.terminal.durations import duration_text
from ambermq.tools.terminal.errors import ToolError
from ambermq.tools.terminal.exit_codes import ExitCode
from ambermq.tools.terminal.options import renamed_option
from ambermq.tools.terminal.output import output_option, print_json, print_line, print_values
from ambermq.tools.terminal.progress import progress_bar, progress_lines
from ambermq.tools.terminal.sizes import parse_size, size_text

__all__ = ["compact", "parse_history"]

_RUNNERS: Final = ("spark", "local")
_NO_SPACE: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
_RATE_MIB: Final = 32
"""A running broker needs the same disk."""


@click.command(epilog="Example: ambermq log compact --data ./data --keep-history 7d --runner local")
@data_option
@click.option("--url", metavar="URL", help="URL of the running broker, with user name and password if it needs them.")
@click.option(
    "--runner",
    "kind",
    type=click.Choice(_RUNNERS),
    default="spark",
    show_default=True,
    help="Spark, or processes on this machine.",
)
@click.option(
    "--master", metavar="M", default="local[*]", show_default=True, help="Spark master, such as spark://HOST:PORT."
)
@click.option(
    "--processes",
    type=click.IntRange(1, 64),
    default=1,
    show_default=True,
    metavar="N",
    help="Number of processes of the local runner.",
)
@click.option(
    "--keep-history",
    "kept",
    multiple=True,
    metavar="DURATION|BYTES",
    help="History to keep: 10m, 7d, 512MiB, all; 0s keeps none. Give an age and a size to apply both limits. Default: "
    "7d.",
)
@click.option(
    "--keep-snapshots",
    is_flag=True,
    help="Keep the history from the oldest snapshot on that a person requested.",
)
@click.option("--archive", metavar="DIR", help="Write the removed events to Parquet files in this directory first.")
@renamed_option(
    "--rate",
    "--disk-rate",
    "rate",
    type=click.IntRange(0),
    metavar="MIB",
    help=f"Maximum MiB a second that each task reads; 0 is no limit. Default: {_RATE_MIB} while a broker runs.",
)
@click.option(
    "--whole-segments",
    is_flag=True,
    help="Remove segments without live messages and rewrite none.",
)
@click.option(
    "--compress",
    "compresses",
    is_flag=True,
    help="Compress rewritten segments, and segments that were never compressed.",
)
@click.option("--dry-run", is_flag=True, help="Only count and print what a compaction would do.")
@token_option
@output_option
def compact(
    data: str | None,
    url: str | None,
    kind: str,
    master: str,
    processes: int,
    kept: tuple[str, ...],
    keep_snapshots: bool,
    archive: str | None,
    rate: int | None,
    whole_segments: bool,
    compresses: bool,
    dry_run: bool,
    token_fd: int | None,
    output: str,
) -> None:
    """Rewrite the log without old history; live messages stay.

    The command works with or without a running broker. A running broker adopts the new segments at the end. A failed
    compaction changes nothing. Offsets stay. Exits 5 if a segment is damaged.
    """
    token = "" if token_fd is None else read_token(token_fd)
    history, directory = parse_history(kept or ("7d",)), log_directory(data)
    history = replace(history, keeps_snapshots=keep_snapshots)
    if archive is not None:
        # Check now: else the job would fail only before the commit, after all the work.
        check_packages("pyarrow", "numpy")
        _check_reach(archive)
    began, now_us = time.monotonic(), time.time_ns() // 1000
    if rate is None:
        rate = 0 if broker_of_directory(directory) is None else _RATE_MIB
    # Segments that are deleted whole are not read: a session is not worth its start.
    kind = "local" if whole_segments else kind
    reads = limited_storage(rate << 20)
    with (
        _disk_full_errors(directory),
        closing(_runner(kind, master, processes, bytes_per_s=rate << 20)) as runner,
        progress_bar(stays=True) if token_fd is None else progress_lines() as progress,
    ):
        if dry_run:
            outcome = preview_compaction(
                directory,
                history,
                runner,
                now_us=now_us,
                whole_segments=whole_segments,
                compresses=compresses,
                progress=progress,
                reads=reads,
            )
        else:
            write_archive = None if archive is None else partial(_archived, archive, current_vhost(), reads)
            with broker_for(directory, _url(directory, url), token=token) as broker:
                outcome = run_compaction(
                    directory,
                    history,
                    runner,
                    broker,
                    now_us=now_us,
                    whole_segments=whole_segments,
                    compresses=compresses,
                    archive=write_archive,
                    progress=progress,
                    reads=reads,
                )
    _print(outcome, output, is_dry=dry_run, seconds=time.monotonic() - began, compresses=compresses)


@contextmanager
def _disk_full_errors(directory: str) -> Iterator[None]:
    """Raise a ToolError with advice if the block fails on a full disk."""
    try:
        yield
    except OSError as error:
        if error.errno not in _NO_SPACE:
            raise
        raise ToolError(
            "the disk is full",
            where=error.filename or directory,
            found=error.strerror or str(error),
            advice="nothing was changed; keep less history, or remove only whole segments with --whole-segments",
        ) from error


def parse_history(texts: tuple[str, ...]) -> History:
    """Return the history to keep by durations and sizes; ToolError if a text is neither."""
    age_us, size = None, None
    for text in texts:
        if text == "all":
            continue
        as_size = parse_size(text)
        if as_size is not None:
            size = as_size if size is None else min(size, as_size)
            continue
        try:
            as_age_us = parse_duration(text)
        except ToolError as error:
            expected = "a duration such as 10m or 7d, or a size such as 512MiB, or all; 0s keeps none"
            raise ToolError(
                "wrong history to keep", expected=expected, found=repr(text), code=ExitCode.USAGE
            ) from error
        age_us = as_age_us if age_us is None else min(age_us, as_age_us)
    return History(age_us, size)


def _url(directory: str, url: str | None) -> str | None:
    """Return the URL of the broker that runs on the directory, None if none does."""
    holder = broker_of_directory(directory)
    if holder is None:
        return None
    own = url or os.environ.get(URL_VARIABLE)
    if own is None:
        return holder.local_url
    # The address comes from the directory, so that no other broker is asked; the user comes from the given URL.
    given, served = BrokerUrl.parse(own), BrokerUrl.parse(holder.local_url)
    return served.with_user(given.username, given.password)


def _runner(kind: str, master: str, processes: int, *, bytes_per_s: int) -> Runner:
    if kind == "local":
        return LocalRunner(processes, bytes_per_s=bytes_per_s)
    from ambermq.tools.compaction.spark_runner import SparkRunner  # noqa: PLC0415 - Spark is an extra, and slow to import

    return SparkRunner.start(master, bytes_per_s=bytes_per_s)


def _check_reach(target: str) -> None:
    """Raise ToolError if no installed file system reaches a path or URL."""
    from ambermq.tools.dataset.file_systems import place_of  # noqa: PLC0415 - only an archive needs it

    place_of(target)


def _archived(target: str, vhost: str, reads: Storage, directory: str, first: int, last: int) -> tuple[str, ...]:
    from ambermq.tools.dataset.archive_writer import write_archive  # noqa: PLC0415 - pyarrow is an extra, and slow to import

    return (write_archive(directory, first, last, target, vhost=vhost, storage=reads)[0],)


def _print(outcome: Outcome, output: str, *, is_dry: bool, seconds: float, compresses: bool) -> None:
    if output == "json":
        print_json(asdict(outcome) | {"dry_run": is_dry, "seconds": round(seconds, 3)}, indent=True)
        return
    for job in outcome.swept:
        print_line(f"removed the files of the dead job {job}")
    if outcome.horizon is None:
        print_line("nothing to do: no segment lies before the history to keep, or it was compacted already")
        return
    print_values(_summary(outcome, is_dry=is_dry, seconds=seconds, compresses=compresses), output)


def _summary(outcome: Outcome, *, is_dry: bool, seconds: float, compresses: bool) -> dict[str, Any]:
    assert outcome.horizon is not None
    verb = "would begin" if is_dry else "begins" if outcome.is_committed else "could begin, but saves no bytes,"
    segments = f"{outcome.untouched} untouched, {outcome.dropped} dropped, {outcome.rewritten} rewritten"
    percent = 100 * (outcome.bytes_before - outcome.bytes_after) // max(outcome.bytes_before, 1)
    # The size after compression is unknown before it is done.
    before = ", before compression" if is_dry and compresses else ""
    records = f"{outcome.records_before:,} -> {outcome.records_after:,}"
    values: dict[str, Any] = {
        f"history {verb} at": f"offset {outcome.horizon.offset:,} ({iso_time(outcome.horizon.time_us)})",
        "segments below": f"{outcome.segments}: {segments}; {outcome.segments_after} afterwards",
        **({"records": records} if outcome.records_before else {}),
        "bytes": f"{size_text(outcome.bytes_before)} -> {size_text(outcome.bytes_after)} ({percent} % less{before})",
        "time": duration_text(round(seconds * 1e6)),
    }
    if outcome.missing:
        values["missing"] = f"{outcome.missing:,} live messages were lost before, by a repair"
    if outcome.archive:
        values["archive"] = ", ".join(outcome.archive)
    return values
