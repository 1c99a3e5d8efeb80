"""`ambermq dlq`: list, show, redrive and purge dead letters."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, Final

import click

from ambermq.engine.history.timestamps import iso_time
from ambermq.tools.client.broker_option import broker_options
from ambermq.tools.client.queue_completion import complete_queue
from ambermq.tools.dead_letters.edit_options import edit_of, edit_options
from ambermq.tools.dead_letters.message_moves import connected_moves, held_text, queue_at
from ambermq.tools.dead_letters.selection import dead_letter_options, selection_of
from ambermq.tools.messages.message_text import plain
from ambermq.tools.terminal.errors import ToolError
from ambermq.tools.terminal.options import confirm, destructive_options, dry_run_option
from ambermq.tools.terminal.output import list_output_option, output_option, print_done, print_rows

__all__ = ["dlq"]

_COLUMNS: Final = ("name", "available", "acquired", "undeliverable", "sources")
_SHOWN: Final = ("offset", "time", "reason", "source", "count", "message_id", "description")
_DESCRIPTION_MAX: Final = 80
"""The characters of a description in a table."""


@click.group(epilog="Example: ambermq dlq list --data ./data")
def dlq() -> None:
    """List, show, redrive and purge dead letters.

    A dead-letter queue is one that another queue names in its setting dead_letter. See docs/dead-letters.md.
    """


@dlq.command("list", epilog="Example: ambermq dlq list --data ./data")
@broker_options
@list_output_option
def list_targets(url: str | None, data: str | None, output: str) -> None:
    """List the dead-letter queues, and the queues that they serve.

    `undeliverable` counts the dead letters that wait on those queues, because the target is gone or full.
    """
    with connected_moves(url, data) as client:
        rows = _target_rows(list(client.queues()))
    print_rows(rows, _COLUMNS, output)


def _target_rows(queues: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return a row for each dead-letter target, with its sources."""
    by_name = {one["name"]: one for one in queues}
    sources: dict[str, list[dict[str, Any]]] = {}
    for one in queues:
        if target := one.get("dead_letter"):
            sources.setdefault(queue_at(target), []).append(one)
    rows = []
    for name, some in sources.items():
        target = by_name.get(name, {})
        row = {"name": name, "available": target.get("available"), "acquired": target.get("acquired")}
        row["undeliverable"] = sum(int(one.get("undeliverable", 0)) for one in some)
        rows.append(row | {"sources": ", ".join(one["name"] for one in some)})
    return rows


@dlq.command("show", epilog="Example: ambermq dlq show dead --reason rejected --limit 10 --data ./data")
@click.argument("name", shell_complete=complete_queue)
@dead_letter_options
@broker_options
@list_output_option
def show(name: str, url: str | None, data: str | None, output: str, **narrowing: Any) -> None:
    """Show the messages of the dead-letter queue NAME, the oldest first.

    The table says where each came from, and why. Messages that a consumer holds are not shown. Exits 6 if there is no
    such queue.
    """
    selection = selection_of(**narrowing)
    with connected_moves(url, data, name) as client:
        rows = list(_shown(client.find(name, selection, reads=True), is_short=output == "table"))
    print_rows(rows, _SHOWN, output)


def _shown(rows: Iterable[dict[str, Any]], *, is_short: bool) -> Iterator[dict[str, Any]]:
    for row in rows:
        time = row.get("time")
        values = {name: plain(value) for name, value in row.items()}
        description = values.get("description") or ""
        if is_short and len(description) > _DESCRIPTION_MAX:
            values["description"] = f"{description[: _DESCRIPTION_MAX - 1]}\N{HORIZONTAL ELLIPSIS}"
        yield {**dict.fromkeys(_SHOWN), **values, "time": None if time is None else iso_time(1000 * int(time))}


@dlq.command("redrive", epilog="Example: ambermq dlq redrive dead --source orders --data ./data")
@click.argument("name", shell_complete=complete_queue)
@click.option("--to", default="", metavar="QUEUE", help="To this queue. Default: where each message came from.")
@edit_options
@dead_letter_options
@dry_run_option
@broker_options
@output_option
def redrive(
    name: str,
    to: str,
    changes: tuple[str, ...],
    removed: tuple[str, ...],
    keep_id: bool,
    dry_run: bool,
    url: str | None,
    data: str | None,
    output: str,
    **narrowing: Any,
) -> None:
    """Send dead letters of queue NAME back to where each came from.

    Each goes to the tail of that queue alone, with no failed delivery. Up to 1,000 messages go at a time, all or none.
    Messages that a consumer holds stay, and are counted. With --set or --unset edited copies go in place of the
    messages. Exits 1 if some could not go back.
    """
    edit = edit_of(changes, removed, keep_id=keep_id)
    selection = selection_of(**narrowing)
    with connected_moves(url, data, name) as client:
        if dry_run:
            counts, targets = client.dry_run_on(name, "REDRIVE", selection, to=to, edit=edit)
        else:
            counts, targets = client.carry_out_on(name, "REDRIVE", selection, to=to, edit=edit), None
        counts["acquired"] = client.held(name)
    _report(name, to, counts, targets, output)


def _report(name: str, to: str, counts: Counter[str], targets: Counter[str] | None, output: str) -> None:
    """Print the counts of a redrive; of a dry run with `targets`. Raises ToolError if messages stay."""
    moved, held = counts["moved"], held_text(counts["acquired"])
    stayed = {key: counts[key] for key in ("acquired", "gone", "no_room", "no_origin")}
    if targets is None:
        print_done(f"redrove {moved:,} messages from {name}{held}", {"name": name, "moved": moved, **stayed}, output)
    else:
        where = ", ".join(f"{number:,} to {target}" for target, number in sorted(targets.items()))
        values = {"dry_run": True, "name": name, "messages": moved, "targets": dict(targets), **stayed}
        text = f"would redrive {moved:,} messages from {name}{f': {where}' if where else ''}{held}"
        print_done(text, values, output)
    _check_all_go(name, counts["no_room"], counts["no_origin"], to, verb="stay" if targets is None else "would stay")


def _check_all_go(name: str, no_room: int, no_origin: int, to: str, *, verb: str) -> None:
    """Raise ToolError if messages stay that could not go back."""
    stay = [f"{no_room:,} have no room {f'on {to}' if to else 'where they came from'}"] if no_room else []
    stay += [f"{no_origin:,} came from no queue that exists"] if no_origin else []
    if stay:
        advice = ["make room there"] if no_room else []
        advice += ["declare that queue"] if no_origin else []
        advice += [] if to else ["name a queue with --to"]
        raise ToolError(f"some messages {verb}: {', '.join(stay)}", where=name, advice=", or ".join(advice))


@dlq.command("purge", epilog="Example: ambermq dlq purge dead --reason expired --yes --data ./data")
@click.argument("name", shell_complete=complete_queue)
@dead_letter_options
@destructive_options
@broker_options
@output_option
def purge(name: str, dry_run: bool, url: str | None, data: str | None, output: str, **narrowing: Any) -> None:
    """Remove messages of the dead-letter queue NAME; their history stays.

    Messages that a consumer holds stay, and are counted.
    """
    selection = selection_of(**narrowing)
    with connected_moves(url, data, name) as client:
        if dry_run:
            count = sum(1 for _ in client.find(name, selection))
            held = client.held(name)
            values = {"dry_run": True, "name": name, "messages": count, "acquired": held}
            print_done(f"would remove {count:,} messages from {name}{held_text(held)}", values, output)
            return
    confirm(lambda: f"This removes dead letters from {name}")
    with connected_moves(url, data, name) as client:
        counts, held = client.carry_out_on(name, "REMOVE", selection), client.held(name)
    values = {"name": name, "removed": counts["removed"], "acquired": held, "gone": counts["gone"]}
    print_done(f"removed {counts['removed']:,} messages from {name}{held_text(held)}", values, output)
