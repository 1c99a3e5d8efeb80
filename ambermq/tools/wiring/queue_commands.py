"""`ambermq queue`: list, show, browse, declare, change, delete and purge queues, over the broker's `$management` node.

With --at the commands read the log, and send no request to a broker.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

import click

from ambermq.tools.client.broker_option import broker_options, broker_url
from ambermq.tools.client.broker_url import BrokerUrl
from ambermq.tools.client.link_client import LinkClient
from ambermq.tools.client.management_client import QueueManagement
from ambermq.tools.client.near_queues import near_queues
from ambermq.tools.client.queue_completion import complete_queue
from ambermq.tools.past.low_priority import ReadingGroup, lower_priority
from ambermq.tools.past.moment_option import at_option
from ambermq.tools.terminal.errors import ToolError
from ambermq.tools.terminal.options import confirm, destructive_options
from ambermq.tools.terminal.output import list_output_option, output_option, print_done, print_rows, print_values
from ambermq.tools.wiring.setting_options import given_settings, setting_options

__all__ = ["queue"]

_COLUMNS: Final = ("name", "available", "acquired", "consumers", "bytes", "published", "accepted", "failed")
_STATES: Final = ("scheduled", "delayed", "undeliverable", "paused")
"""What says why messages are not delivered: columns of a table in which a queue has it."""

_LAZY: Final = {
    "browse": (
        "ambermq.tools.history.browse_command:browse",
        "Show the messages on queue NAME from its head.",
    ),
    "copy": (
        "ambermq.tools.dead_letters.queue_moves:copy",
        "Copy the waiting messages of queue NAME to the tail of the queue TO.",
    ),
    "move": (
        "ambermq.tools.dead_letters.queue_moves:move",
        "Move the waiting messages of queue NAME to the tail of the queue TO.",
    ),
    "update": (
        "ambermq.tools.queues.update_command:update",
        "Change settings of queue NAME, or of the queues that match a pattern.",
    ),
}
"""Commands with slow imports."""


@click.group(cls=ReadingGroup, lazy=_LAZY, epilog="Example: ambermq queue list --url amqp://127.0.0.1:5672")
def queue() -> None:
    """List, show, browse, declare, change, delete and purge queues."""


@queue.command("list", epilog="Example: ambermq queue list --data ./data --at 5 --output json")
@at_option
@broker_options
@list_output_option
def list_queues(at: str | None, url: str | None, data: str | None, output: str) -> None:
    """List all queues with their counts, the oldest first.

    The table says which queues are paused, or have messages that are scheduled, delayed or undeliverable, if there are
    any. JSON has every attribute.
    """
    if at is not None:
        _print_queues(_rows_at(at, url, data), output)
        return
    with _management(url, data) as management:
        _print_queues(management.queues(), output)


def _print_queues(rows: Iterable[Mapping[str, Any]], output: str) -> None:
    columns: tuple[str, ...] = _COLUMNS
    if output == "table":
        rows = list(rows)
        columns += tuple(name for name in _STATES if any(row.get(name) for row in rows))
    print_rows(rows, columns, output)


@queue.command("show", epilog="Example: ambermq queue show orders --data ./data")
@click.argument("name", shell_complete=complete_queue)
@at_option
@broker_options
@output_option
def show(name: str, at: str | None, url: str | None, data: str | None, output: str) -> None:
    """Show all attributes of queue NAME.

    Exits 6 if there is no such queue.
    """
    if at is not None:
        print_values(_rows_at(at, url, data, name)[0], output)
        return
    with _management(url, data, name) as management:
        print_values(management.read(name), output)


@queue.command("declare", epilog="Example: ambermq queue declare orders --messages-max 1000000 --data ./data")
@click.argument("name")
@click.option("--template", metavar="T", help="Queue template. Default: the one whose pattern matches NAME.")
@setting_options
@broker_options
@output_option
def declare(name: str, template: str | None, url: str | None, data: str | None, output: str, **settings: Any) -> None:
    """Declare the queue NAME.

    The template gives each setting that has no option here. See docs/queues.md for the settings.

    The command succeeds if the same queue exists, and exits 1 if a different one has the name.
    """
    with _management(url, data) as management:
        is_new, attributes = management.declare(name, given_settings(settings), template=template)
    print_done(f"{'declared' if is_new else 'exists'} {name}", {"name": name, "created": is_new, **attributes}, output)


@queue.command("pause", epilog="Example: ambermq queue pause orders --data ./data")
@click.argument("name", shell_complete=complete_queue)
@broker_options
@output_option
def pause(name: str, url: str | None, data: str | None, output: str) -> None:
    """Deliver nothing from queue NAME until it is resumed.

    Consumers stay attached, and keep what they hold. Producers go on. A restart does not resume it. The command prints
    "unchanged" if the queue is paused already.
    """
    _set_paused(name, url, data, output, is_paused=True)


@queue.command("resume", epilog="Example: ambermq queue resume orders --data ./data")
@click.argument("name", shell_complete=complete_queue)
@broker_options
@output_option
def resume(name: str, url: str | None, data: str | None, output: str) -> None:
    """Deliver from queue NAME again."""
    _set_paused(name, url, data, output, is_paused=False)


def _set_paused(name: str, url: str | None, data: str | None, output: str, *, is_paused: bool) -> None:
    with _management(url, data, name) as management:
        values = management.update(name, {"paused": is_paused})
    done = "paused" if is_paused else "resumed"
    print_done(f"{done if values['updated'] else 'unchanged'} {name}", values, output)


@queue.command("delete", epilog="Example: ambermq queue delete orders --if-unused --yes --data ./data")
@click.argument("name", shell_complete=complete_queue)
@click.option("--if-unused", is_flag=True, help="Only if it has no consumers.")
@click.option("--if-empty", is_flag=True, help="Only if it has no messages.")
@destructive_options
@broker_options
@output_option
def delete(
    name: str, if_unused: bool, if_empty: bool, dry_run: bool, url: str | None, data: str | None, output: str
) -> None:
    """Delete the queue NAME and the messages on it.

    Exits 6 if there is no such queue.
    """
    if dry_run:
        row = _read(name, url, data)
        _check_unused(row, if_unused=if_unused, if_empty=if_empty)
        print_done(f"would delete {_shown(row)}", {"dry_run": True, **row}, output)
        return
    confirm(lambda: f"This deletes the queue {_shown(_read(name, url, data))}")
    with _management(url, data, name) as management:
        management.delete(name, if_unused=if_unused, if_empty=if_empty)
    print_done(f"deleted {name}", {"name": name, "deleted": True}, output)


@queue.command("purge", epilog="Example: ambermq queue purge orders --yes --data ./data")
@click.argument("name", shell_complete=complete_queue)
@click.option("--scheduled", is_flag=True, help="Also the messages that are scheduled for later.")
@destructive_options
@broker_options
@output_option
def purge(name: str, scheduled: bool, dry_run: bool, url: str | None, data: str | None, output: str) -> None:
    """Remove the available messages of queue NAME.

    Messages that a consumer has acquired stay, and without --scheduled those that are scheduled for later.
    """
    if dry_run:
        row = _read(name, url, data)
        count = row["available"] + (row.get("scheduled", 0) if scheduled else 0)
        print_done(
            f"would purge {count:,} messages from {name}", {"dry_run": True, "name": name, "messages": count}, output
        )
        return
    confirm(lambda: f"This removes the available messages of {_shown(_read(name, url, data))}")
    with _management(url, data, name) as management:
        count = management.purge(name, scheduled=scheduled)
    print_done(f"purged {count:,} messages from {name}", {"name": name, "messages": count}, output)


def _read(name: str, url: str | None, data: str | None) -> dict[str, Any]:
    """Return the attributes of a queue; the connection ends before a question is asked."""
    with _management(url, data, name) as management:
        return dict(management.read(name))


def _check_unused(row: Mapping[str, Any], *, if_unused: bool, if_empty: bool) -> None:
    """Raise ToolError if the conditions of a deletion are not met."""
    if if_unused and row["consumers"]:
        raise ToolError(f"the queue has {row['consumers']:,} consumers", where=row["name"])
    depth = sum(row.get(name, 0) for name in ("available", "acquired", "undeliverable", "delayed", "scheduled"))
    if if_empty and depth:
        raise ToolError(f"the queue has {depth:,} messages", where=row["name"])


def _shown(row: Mapping[str, Any]) -> str:
    return f"{row['name']} with {row['available']:,} available and {row['acquired']:,} acquired messages"


def _rows_at(at: str, url: str | None, data: str | None, name: str | None = None) -> list[dict[str, Any]]:
    """Return the rows of all queues at a moment, or of the queue NAME."""
    lower_priority()
    from ambermq.tools.past.past_access import offset_of, opened_past, state_of  # noqa: PLC0415
    from ambermq.tools.past.queue_rows import queue_row, queue_rows  # noqa: PLC0415 - an import of 0.1 s that only --at needs

    with opened_past(url, data) as past:
        state = state_of(past, offset_of(past, at))
    return list(queue_rows(state)) if name is None else [queue_row(state, name)]


@contextmanager
def _management(url: str | None, data: str | None, name: str = "") -> Iterator[QueueManagement]:
    """Yield the management of queues; an error about the queue NAME has the nearest names."""
    with LinkClient.connect(BrokerUrl.parse(broker_url(url, data))) as client, near_queues(client, name):
        yield QueueManagement(client)
