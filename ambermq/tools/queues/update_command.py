"""`ambermq queue update`: change settings of one queue, or of those whose names match a pattern."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

import click

from ambermq.engine.settings.setting_table import SETTINGS
from ambermq.tools.client.broker_option import broker_options, broker_url
from ambermq.tools.client.broker_url import BrokerUrl
from ambermq.tools.client.link_client import LinkClient
from ambermq.tools.client.management_client import QueueManagement, queue_update
from ambermq.tools.client.near_queues import near_queues
from ambermq.tools.client.queue_completion import complete_queue
from ambermq.tools.queues.queue_changes import QueueChange, checked_pattern, matches, planned
from ambermq.tools.terminal.errors import ToolError
from ambermq.tools.terminal.exit_codes import ExitCode
from ambermq.tools.terminal.options import confirm, destructive_options, warn
from ambermq.tools.terminal.output import output_option, print_done, print_json, print_rows, print_words
from ambermq.tools.terminal.progress_counter import ProgressCounter
from ambermq.tools.wiring.setting_options import given_settings, setting_options

__all__ = ["update"]

_COLUMNS: Final = ("name", "setting", "before", "after")


@click.command(
    "update", epilog="Example: ambermq queue update --match 'orders.#' --bytes-max 64MiB --dry-run --data ./data"
)
@click.argument("name", required=False, shell_complete=complete_queue)
@click.option("--match", "pattern", metavar="PATTERN", help="All queues whose names match, as for a template.")
@setting_options
@destructive_options
@broker_options
@output_option
def update(
    name: str | None,
    pattern: str | None,
    dry_run: bool,
    url: str | None,
    data: str | None,
    output: str,
    **settings: Any,
) -> None:
    """Change settings of queue NAME, or of the queues that match a pattern.

    Messages on the queue stay, even above a lower maximum. The command prints "unchanged" if the queue has these
    settings. Exits 6 if there is no such queue.

    With --match the command prints each changed setting with its old and new value. A queue whose update is refused is
    reported by its name, and the others are updated; then the command exits 1.
    """
    wanted = given_settings(settings)
    if (name is None) is (pattern is None):
        found = "neither" if name is None else "both"
        raise ToolError("no single choice of queues", expected="NAME or --match", found=found, code=ExitCode.USAGE)
    if not wanted:
        names = ", ".join(f"--{one.option}" for one in SETTINGS.values())
        raise ToolError("no setting is given", expected=f"at least one of {names}", code=ExitCode.USAGE)
    if name is not None and not dry_run:
        with _management(url, data, name) as management:
            values = management.update(name, wanted)
        print_done(f"{'updated' if values['updated'] else 'unchanged'} {name}", values, output)
        return
    where = name if pattern is None else pattern
    assert where is not None, "one of them is given"
    rows = _rows(name, pattern, url, data)
    changes = planned(rows, wanted)
    if not dry_run and changes:
        confirm(lambda: f"This changes {len(changes):,} of the {len(rows):,} queues that match {where}")
        changes = _carried_out(changes, where, output, len(rows), url, data)
    _report(changes, where, output, len(rows), is_done=not dry_run)


def _rows(name: str | None, pattern: str | None, url: str | None, data: str | None) -> list[Mapping[str, Any]]:
    """Return the attributes of the queues; the connection ends before a question is asked."""
    if pattern is None:
        assert name is not None, "one of them is given"
        with _management(url, data, name) as management:
            return [management.read(name)]
    words = checked_pattern(pattern)
    with _management(url, data) as management:
        rows: list[Mapping[str, Any]] = [row for row in management.queues() if matches(words, str(row["name"]))]
    if not rows:
        raise ToolError("no queue matches", where=pattern, code=ExitCode.NOT_FOUND)
    return rows


def _carried_out(
    changes: Sequence[QueueChange], where: str, output: str, matched: int, url: str | None, data: str | None
) -> list[QueueChange]:
    """Send all updates, several in flight; return them with their refusals. An error prints those that are done."""
    done: list[QueueChange] = []
    requests = [queue_update(one.name, {name: after for name, (_, after) in one.values.items()}) for one in changes]
    try:
        with _management(url, data) as management, ProgressCounter("updating", len(changes), noun="queues") as counter:
            for change, refusal in zip(changes, management.carry_out(requests, goes_on=True), strict=True):
                done.append(change._replace(refusal="" if refusal is None else refusal.parts["what"]))
                counter.show(len(done))
    except ToolError:
        if done:
            _print(done, where, output, matched, is_done=True)
        raise
    return done


def _report(changes: Sequence[QueueChange], where: str, output: str, matched: int, *, is_done: bool) -> None:
    """Print the changes. Raises ToolError if a queue is refused."""
    _print(changes, where, output, matched, is_done=is_done)
    refused = [one for one in changes if one.refusal]
    for one in refused if output == "table" else ():
        warn(f"{one.name}: {one.refusal}")
    if refused:
        were = "were" if is_done else "would be"
        raise ToolError(f"{len(refused):,} of {len(changes):,} updates {were} refused", where=where)


def _print(changes: Sequence[QueueChange], where: str, output: str, matched: int, *, is_done: bool) -> None:
    if output == "json":
        rows = [one.as_json(is_done=is_done) for one in changes]
        print_json({"dry_run": not is_done, "match": where, "matched": matched, "queues": rows}, indent=True)
        return
    accepted = [one for one in changes if not one.refusal]
    if accepted:
        rows = [
            {"name": one.name, "setting": setting, "before": before, "after": after}
            for one in accepted
            for setting, (before, after) in one.values.items()
        ]
        print_rows(rows, _COLUMNS, output)
    print_words(
        f"{'updated' if is_done else 'would update'} {len(accepted):,} of {matched:,} queues that match {where}"
    )


@contextmanager
def _management(url: str | None, data: str | None, name: str = "") -> Iterator[QueueManagement]:
    """Yield the management of queues; an error about the queue NAME has the nearest names."""
    with LinkClient.connect(BrokerUrl.parse(broker_url(url, data))) as client, near_queues(client, name):
        yield QueueManagement(client)
