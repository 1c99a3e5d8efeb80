"""`ambermq history queue`: depth, rates and oldest age of one queue over time, as a table and line charts."""

import sys
from collections.abc import Sequence
from typing import Any, Final

import click

from ambermq.engine.address import queue_name
from ambermq.engine.history.past import Past, PastError
from ambermq.engine.history.timestamps import iso_time
from ambermq.engine.model.queue import Queue
from ambermq.tools.client.broker_option import data_option
from ambermq.tools.history.sparkline import spark
from ambermq.tools.history.timeline import STEPS_MAX, Sample, nice_step_us, oldest_entry, sampled, step_ends
from ambermq.tools.past.moment_option import WHEN_HELP, parse_duration
from ambermq.tools.past.past_access import moment_of, opened_past, state_of, watched_events
from ambermq.tools.past.queue_rows import no_such_queue
from ambermq.tools.terminal.errors import ToolError
from ambermq.tools.terminal.exit_codes import ExitCode
from ambermq.tools.terminal.options import renamed_option
from ambermq.tools.terminal.output import list_output_option, print_line, print_rows

__all__ = ["queue"]

_COLUMNS: Final[tuple[str, ...]] = (
    "time",
    "depth",
    "available",
    "acquired",
    "published_per_second",
    "settled_per_second",
    "oldest_seconds",
)
_CHARTED: Final = ("depth", "published_per_second", "settled_per_second", "oldest_seconds")
_SPAN_US: Final = 3_600_000_000


@click.command("queue", epilog="Example: ambermq history queue orders --since 5 --step 10s --data ./data")
@click.argument("name")
@renamed_option(
    "--from",
    "--since",
    "begin",
    metavar="WHEN",
    help=f"{WHEN_HELP} Default: an hour before --until, or when the queue was declared.",
)
@renamed_option("--to", "--until", "end", metavar="WHEN", default="now", show_default=True, help=WHEN_HELP)
@click.option("--step", metavar="DURATION", help="Time between two rows, such as 10s or 1h30m. Default: about 20 rows.")
@data_option
@list_output_option
def queue(name: str, begin: str | None, end: str, step: str | None, data: str | None, output: str) -> None:
    """Show depth, rates and oldest age of queue NAME over time.

    Each row is one step: what the queue held at its end, and the messages published and settled (accepted or rejected)
    in it for each second. Exits 6 if no queue had the name at the end of a step.
    """
    plain_name = queue_name(name, name_bytes_max=sys.maxsize)
    with opened_past(None, data) as past:
        last, end_us = moment_of(past, end)
        begin_us = _begin(past, plain_name, last, end_us) if begin is None else moment_of(past, begin)[1]
        first = past.offset_at(begin_us)
        times = _times(begin_us, end_us, step)
        events = watched_events(past, first + 1, last)
        offsets = [past.offset_at(time_us) for time_us in times] if past.clock_step else None
        samples = list(sampled(state_of(past, first), events, plain_name, times, offsets=offsets))
        rows = [_row(past, *pair) for pair in zip((begin_us, *times), samples, strict=False)]
    if all(sample.queue is None for sample in samples):
        when = f"at the end of any step from {iso_time(begin_us)} to {iso_time(end_us)}"
        raise no_such_queue(name, when, "check the name, or choose a shorter --step")
    _print(rows, output)


def _begin(past: Past, name: str, last: int, end_us: int) -> int:
    """Return the latest of: an hour before the end, the time of the queue's declaration, the begin of the log.

    What was before the newest step of the clock has other times, perhaps later ones. So that step counts as the begin.
    """
    found, step = state_of(past, last).queue_named(name), past.clock_step
    declared = 0 if found is None else max(found.id, past.horizon.offset - 1)
    if step is not None and past.horizon.offset <= step.offset <= last:
        return max(end_us - _SPAN_US, step.time_us, past.time_at(declared) if declared > step.offset else 0)
    return max(end_us - _SPAN_US, past.time_at(declared) if found is not None else 0, past.first_time_us)


def _times(begin_us: int, end_us: int, step: str | None) -> list[int]:
    step_us = nice_step_us(end_us - begin_us) if step is None else parse_duration(step)
    if begin_us >= end_us or step_us <= 0 or (end_us - begin_us) // step_us >= STEPS_MAX:
        raise ToolError(
            "the time span does not fit the steps",
            where=f"{iso_time(begin_us)} to {iso_time(end_us)}",
            expected=f"--since before --until, and 1 to {STEPS_MAX} steps",
            found=f"a step of {step_us / 1_000_000:g} s",
            code=ExitCode.USAGE,
        )
    return step_ends(begin_us=begin_us, end_us=end_us, step_us=step_us)


def _row(past: Past, before_us: int, sample: Sample) -> dict[str, Any]:
    counts = {"published": sample.published, "settled": sample.settled}
    values = dict.fromkeys(_COLUMNS[1:]) if sample.queue is None else _values(past, before_us, sample, sample.queue)
    return {"time": iso_time(sample.time_us), **values, **counts}


def _values(past: Past, before_us: int, sample: Sample, found: Queue) -> dict[str, float | None]:
    seconds = max(sample.time_us - before_us, 1) / 1_000_000
    values = (
        found.depth,
        found.available,
        found.acquired_count,
        round(sample.published / seconds, 3),
        round(sample.settled / seconds, 3),
        _oldest_seconds(past, sample.time_us, found),
    )
    return dict(zip(_COLUMNS[1:], values, strict=True))


def _oldest_seconds(past: Past, time_us: int, found: Queue) -> float | None:
    """Return the age of the oldest message, 0 if there is none, None if a repair has lost its record."""
    oldest = oldest_entry(found)
    try:
        age_us = 0 if oldest is None else max(0, time_us - past.published_us(oldest))
    except PastError:
        return None
    return round(age_us / 1_000_000, 3)


def _print(rows: Sequence[dict[str, Any]], output: str) -> None:
    print_rows(rows, _COLUMNS, output)
    if output != "table":
        return
    print_line("")
    for name in _CHARTED:
        values = [row[name] for row in rows]
        known = [value for value in values if value is not None]
        line = spark(values, encoding=sys.stdout.encoding or "ascii")
        extent = f"{min(known):,g} to {max(known):,g}" if known else "not known"
        print_line(f"{name.replace('_', ' '):<20}  {line}  {extent}")
