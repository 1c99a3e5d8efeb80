"""`ambermq history diff`: the queues, wiring and links that changed between two moments."""

from collections.abc import Sequence
from typing import Any, Final

import click

from ambermq.engine.history.timestamps import iso_time
from ambermq.engine.history.updatable_settings import values_text
from ambermq.tools.client.broker_option import data_option
from ambermq.tools.history.state_changes import StateFold, link_changes, member_names, queue_changes, wiring_changes
from ambermq.tools.past.moment_option import WHEN_HELP
from ambermq.tools.past.past_access import moment_of, opened_past, state_of, watched_events
from ambermq.tools.terminal.errors import ToolError
from ambermq.tools.terminal.exit_codes import ExitCode
from ambermq.tools.terminal.options import renamed_option
from ambermq.tools.terminal.output import output_option, print_json, print_line, print_rows

__all__ = ["diff"]

_QUEUES: Final = (
    "name",
    "change",
    "depth_then",
    "depth_now",
    "published",
    "accepted",
    "rejected",
    "released",
    "failed",
    "purged",
)
_WIRING: Final = ("change", "muxer", "queue", "destination")
_LINKS: Final = ("change", "link", "node", "name")
_ROWS_MAX: Final = 20


@click.command("diff", epilog="Example: ambermq history diff --since 5 --until now --data ./data")
@renamed_option("--from", "--since", "begin", required=True, metavar="WHEN", help=WHEN_HELP)
@renamed_option("--to", "--until", "end", default="now", show_default=True, metavar="WHEN", help=WHEN_HELP)
@data_option
@output_option
def diff(begin: str, end: str, data: str | None, output: str) -> None:
    """Show what changed between two moments.

    For each queue that changed: its depth at both moments and the messages that came and went. Then wiring and links.
    """
    with opened_past(None, data) as past:
        (first, first_us), (last, last_us) = moment_of(past, begin), moment_of(past, end)
        if last < first:
            raise ToolError("--until lies before --since", where=f"{first} to {last}", code=ExitCode.USAGE)
        between = StateFold(state_of(past, first))
        between.fold(watched_events(past, first + 1, last))
    changes = {
        "from": {"offset": first, "time": iso_time(first_us)},
        "to": {"offset": last, "time": iso_time(last_us)},
        "events": dict(sorted(between.counts.items())),
        **_changes(between),
    }
    if output == "json":
        print_json(changes, indent=True)
    else:
        _print(changes)


def _changes(between: StateFold) -> dict[str, list[dict[str, Any]]]:
    before, after = between.before, between.after
    names = member_names(between)
    return {
        "queues": list(queue_changes(between)),
        "wiring": list(wiring_changes(before, after, names)),
        "links": list(link_changes(before, after, names)),
    }


def _print(changes: dict[str, Any]) -> None:
    begin, end, counts = changes["from"], changes["to"], changes["events"]
    print_line(f"from  {begin['time']}  offset {begin['offset']}")
    print_line(f"to    {end['time']}  offset {end['offset']}")
    print_line(f"{sum(counts.values()):,} events: {', '.join(f'{count:,} {kind}' for kind, count in counts.items())}")
    wiring = [_table_row(row) for row in changes["wiring"]]
    columns_of_wiring = (*_WIRING, "values") if any("values" in row for row in wiring) else _WIRING
    for rows, columns in ((changes["queues"], _QUEUES), (wiring, columns_of_wiring), (changes["links"], _LINKS)):
        _print_some(rows, columns)


def _table_row(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row of wiring for a table: its values as one text."""
    if "values" not in row:
        return row
    pairs = {name: (value["before"], value["after"]) for name, value in row["values"].items()}
    return {**row, "values": values_text(pairs)}


def _print_some(rows: Sequence[dict[str, Any]], columns: Sequence[str]) -> None:
    if rows:
        print_line("")
        print_rows(rows[:_ROWS_MAX], columns, "table")
    if len(rows) > _ROWS_MAX:
        print_line(f"and {len(rows) - _ROWS_MAX:,} more; --output json has all")
