"""`ambermq queue move` and `ambermq queue copy`."""

from typing import Any

import click

from ambermq.tools.client.broker_option import broker_options
from ambermq.tools.client.queue_completion import complete_queue
from ambermq.tools.dead_letters.message_moves import connected_moves, held_text
from ambermq.tools.dead_letters.selection import Selection, narrowing_options, selection_of
from ambermq.tools.terminal.errors import ToolError
from ambermq.tools.terminal.options import dry_run_option
from ambermq.tools.terminal.output import output_option, print_done

__all__ = ["copy", "move"]


@click.command("move", epilog="Example: ambermq queue move orders orders-later --limit 100 --data ./data")
@click.argument("name", shell_complete=complete_queue)
@click.argument("to", shell_complete=complete_queue)
@narrowing_options
@dry_run_option
@broker_options
@output_option
def move(name: str, to: str, dry_run: bool, url: str | None, data: str | None, output: str, **narrowing: Any) -> None:
    """Move the waiting messages of queue NAME to the tail of the queue TO.

    Up to 1,000 messages at a time go at once, all or none. Messages that a consumer holds stay, and are counted. Exits
    1 if the queue TO has no room for all.
    """
    _carry_out("MOVE", name, to, selection_of(**narrowing), url, data, output, dry_run=dry_run)


@click.command("copy", epilog="Example: ambermq queue copy orders audit --limit 100 --data ./data")
@click.argument("name", shell_complete=complete_queue)
@click.argument("to", shell_complete=complete_queue)
@narrowing_options
@dry_run_option
@broker_options
@output_option
def copy(name: str, to: str, dry_run: bool, url: str | None, data: str | None, output: str, **narrowing: Any) -> None:
    """Copy the waiting messages of queue NAME to the tail of the queue TO.

    The messages stay on NAME; each copy is settled by itself. The messages are stored once.
    """
    _carry_out("COPY", name, to, selection_of(**narrowing), url, data, output, dry_run=dry_run)


def _carry_out(
    operation: str,
    name: str,
    to: str,
    selection: Selection,
    url: str | None,
    data: str | None,
    output: str,
    *,
    dry_run: bool,
) -> None:
    verb, done = operation.lower(), "moved" if operation == "MOVE" else "copied"
    with connected_moves(url, data, name) as requests:
        if dry_run:
            counts = requests.dry_run_on(name, operation, selection, to=to)[0]
        else:
            counts = requests.carry_out_on(name, operation, selection, to=to)
        counts["acquired"] = requests.held(name)
    moved, stayed = counts["moved"], {key: counts[key] for key in ("acquired", "gone", "no_room")}
    held = held_text(counts["acquired"])
    if dry_run:
        values = {"dry_run": True, "name": name, "to": to, "messages": moved, **stayed}
        print_done(f"would {verb} {moved:,} messages from {name} to {to}{held}", values, output)
    else:
        values = {"name": name, "to": to, "moved": moved, **stayed}
        print_done(f"{done} {moved:,} messages from {name} to {to}{held}", values, output)
    if counts["no_room"]:
        what = f"{counts['no_room']:,} messages {'would stay' if dry_run else 'stay'}: the queue is full"
        raise ToolError(what, where=to, advice="make room there, or raise messages_max and bytes_max")
