"""`ambermq schedule`: list and cancel messages that are scheduled for later."""

from collections.abc import Iterable, Iterator
from typing import Any, Final

import click

from ambermq.engine.history.timestamps import iso_time
from ambermq.tools.client.broker_option import broker_options
from ambermq.tools.client.queue_completion import complete_queue
from ambermq.tools.dead_letters.message_moves import connected_moves
from ambermq.tools.dead_letters.selection import Selection, narrowing_options, selection_of
from ambermq.tools.messages.message_text import plain
from ambermq.tools.terminal.errors import ToolError
from ambermq.tools.terminal.exit_codes import ExitCode
from ambermq.tools.terminal.options import dry_run_option
from ambermq.tools.terminal.output import list_output_option, output_option, print_done, print_rows

__all__ = ["schedule"]

_SHOWN: Final = ("offset", "due", "bytes", "message_id")
_IDS_SHOWN: Final = 10


@click.group(epilog="Example: ambermq schedule list orders --data ./data")
def schedule() -> None:
    """List and cancel scheduled messages.

    A producer schedules a message by an annotation. See docs/scheduling.md.
    """


@schedule.command("list", epilog="Example: ambermq schedule list orders --limit 10 --data ./data")
@click.argument("name", shell_complete=complete_queue)
@narrowing_options
@broker_options
@list_output_option
def list_scheduled(name: str, url: str | None, data: str | None, output: str, **narrowing: Any) -> None:
    """List the scheduled messages of queue NAME, the oldest first.

    The table says when each is available. Exits 6 if there is no such queue.
    """
    selection = selection_of(**narrowing)._replace(scheduled=True)
    with connected_moves(url, data, name) as client:
        rows = list(_shown(client.find(name, selection, reads=True)))
    print_rows(rows, _SHOWN, output)


def _shown(rows: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for row in rows:
        values = {key: plain(value) for key, value in row.items() if key in _SHOWN}
        yield {**values, "due": iso_time(1000 * int(row["due"]))}


@schedule.command("cancel", epilog="Example: ambermq schedule cancel orders --message-id o-7 --dry-run --data ./data")
@click.argument("name", shell_complete=complete_queue)
@click.option(
    "--offset", "offsets", type=click.IntRange(0), multiple=True, metavar="N", help="The message at offset N."
)
@click.option("--message-id", "ids", multiple=True, metavar="ID", help="The messages with this message-id.")
@dry_run_option
@broker_options
@output_option
def cancel(
    name: str,
    offsets: tuple[int, ...],
    ids: tuple[str, ...],
    dry_run: bool,
    url: str | None,
    data: str | None,
    output: str,
) -> None:
    """Cancel scheduled messages of queue NAME; their history stays.

    Exits 1 if a message is not scheduled, or not any more: the others are cancelled.
    """
    if not offsets and not ids:
        raise ToolError("no message is named", expected="--offset or --message-id", code=ExitCode.USAGE)
    with connected_moves(url, data, name) as client:
        found, missing = {*offsets}, set(ids)
        if ids or dry_run:
            scheduled = client.find(name, Selection(scheduled=True), reads=bool(ids))
            listed, missing = _named(scheduled, found, missing)
            found = listed if dry_run else found | listed
        gone = len(missing) + len({*offsets} - found)
        if dry_run:
            values = {"dry_run": True, "name": name, "messages": len(found), "gone": gone}
            print_done(f"would cancel {len(found):,} messages of {name}", values, output)
        else:
            counts = client.cancel(name, sorted(found))
            cancelled, gone = counts["removed"], gone + counts["gone"] + counts["acquired"]
            values = {"name": name, "cancelled": cancelled, "gone": gone}
            print_done(f"cancelled {cancelled:,} messages of {name}", values, output)
    if gone:
        unknown = f": no message-id {', '.join(sorted(missing)[:_IDS_SHOWN])}" if missing else ""
        why = f"{gone:,} of the named messages {'is' if gone == 1 else 'are'} not scheduled{unknown}"
        raise ToolError(why, where=name, advice=f"`ambermq schedule list {name}` shows those that are")


def _named(rows: Iterable[dict[str, Any]], offsets: set[int], ids: set[str]) -> tuple[set[int], set[str]]:
    """Return the offsets of the scheduled messages that are named by offset or id, and the ids that none has."""
    found, missing = set[int](), {*ids}
    for row in rows:
        offset, message_id = int(row["offset"]), str(plain(row.get("message_id")))
        if offset in offsets or message_id in ids:
            found.add(offset)
            missing.discard(message_id)
    return found, missing
