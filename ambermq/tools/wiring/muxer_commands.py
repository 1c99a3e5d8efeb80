"""`ambermq muxer`: list, show, declare, update and delete muxers, over the broker's `$management` node.

With --at the commands read the log, and send no request to a broker.
"""

from collections.abc import Iterable
from typing import Any, Final

import click

from ambermq.engine.model.muxer import MuxerKind, Options
from ambermq.tools.client.broker_option import broker_options
from ambermq.tools.config.attachment_options import member_text, options_of, options_text
from ambermq.tools.past.moment_option import at_option
from ambermq.tools.terminal.errors import ToolError, TranslatingGroup
from ambermq.tools.terminal.exit_codes import ExitCode
from ambermq.tools.terminal.number_range import NumberRange
from ambermq.tools.terminal.options import confirm, destructive_options
from ambermq.tools.terminal.output import (
    list_output_option,
    output_option,
    print_done,
    print_line,
    print_rows,
    print_values,
)
from ambermq.tools.wiring.client import managed_wiring, wiring_rows

__all__ = ["muxer"]

_COLUMNS: Final = ("name", "class", "attachments", "producers", "separator", "probability", "seed", "draws")
_KINDS: Final = {kind.text: kind for kind in MuxerKind}
_PROBABILITY: Final = NumberRange(0, 1)
_SEED: Final = click.IntRange(-(1 << 63), (1 << 63) - 1)


@click.group(cls=TranslatingGroup, epilog="Example: ambermq muxer list --data ./data")
def muxer() -> None:
    """List, show, declare, update and delete muxers.

    Producers send to muxers; queues and muxers attach to them.
    """


@muxer.command("list", epilog="Example: ambermq muxer list --data ./data --output json")
@at_option
@broker_options
@list_output_option
def list_muxers(at: str | None, url: str | None, data: str | None, output: str) -> None:
    """List all muxers, the oldest first."""
    if at is not None:
        _print_muxers(wiring_rows(url, data, at).muxers, output)
        return
    with managed_wiring(url, data) as management:
        _print_muxers(management.muxers(), output)


@muxer.command("show", epilog="Example: ambermq muxer show colours --data ./data")
@click.argument("name")
@at_option
@broker_options
@output_option
def show(name: str, at: str | None, url: str | None, data: str | None, output: str) -> None:
    """Show the muxer NAME and its attachments.

    Exits 6 if there is no such muxer.
    """
    if at is not None:
        rows = wiring_rows(url, data, at)
        found = next((row for row in rows.muxers if row["name"] == name), None)
        if found is None:
            raise ToolError(f"no such muxer at {at}", where=name, code=ExitCode.NOT_FOUND)
        _print_muxer(found, [row for row in rows.attachments if row["muxer"] == name], output)
        return
    with managed_wiring(url, data) as management:
        _print_muxer(management.muxer(name), list(management.attachments(name)), output)


@muxer.command("declare", epilog="Example: ambermq muxer declare net --class lossy --probability 0.9 --data ./data")
@click.argument("name")
@click.option(
    "--class",
    "kind",
    type=click.Choice(list(_KINDS)),
    required=True,
    help="Class: how the muxer chooses attachments for a message.",
)
@click.option("--separator", metavar="S", help="Separator of words, for the wild classes. Default: a dot.")
@click.option(
    "--probability",
    type=_PROBABILITY,
    metavar="P",
    help="Probability that a lossy muxer passes a message on. Default: 1.",
)
@click.option(
    "--seed", type=_SEED, metavar="N", help="Seed of a lossy muxer: the same seed gives the same choices. Default: 0."
)
@broker_options
@output_option
def declare(
    name: str,
    kind: str,
    separator: str | None,
    probability: float | None,
    seed: int | None,
    url: str | None,
    data: str | None,
    output: str,
) -> None:
    """Declare the muxer NAME.

    The command succeeds if the same muxer exists, and exits 1 if a different one has the name.
    """
    given = {"separator": separator, "probability": probability, "seed": seed}
    options = Options(**{option: value for option, value in given.items() if value is not None})  # type: ignore[arg-type]
    with managed_wiring(url, data) as management:
        is_new = management.declare_muxer(name, _KINDS[kind], options)
    print_done(f"{'declared' if is_new else 'exists'} {name}", {"name": name, "class": kind, "created": is_new}, output)


@muxer.command("update", epilog="Example: ambermq muxer update net --probability 0.5 --data ./data")
@click.argument("name")
@click.option(
    "--probability", type=_PROBABILITY, metavar="P", help="Probability of passing a message on. Default: unchanged."
)
@click.option("--seed", type=_SEED, metavar="N", help="Seed of the draws. Default: unchanged.")
@broker_options
@output_option
def update(
    name: str, probability: float | None, seed: int | None, url: str | None, data: str | None, output: str
) -> None:
    """Change the probability or seed of the lossy muxer NAME.

    The muxer continues from its last draw. The command prints "unchanged" if the muxer has these values. No other
    attribute of a muxer can change: declare another muxer. Exits 6 if there is no such muxer.
    """
    if probability is None and seed is None:
        raise click.UsageError("nothing to update: give --probability, --seed or both")
    with managed_wiring(url, data) as management:
        values = management.update_muxer(name, probability=probability, seed=seed)
    print_done(f"{'updated' if values['updated'] else 'unchanged'} {name}", values, output)


@muxer.command("delete", epilog="Example: ambermq muxer delete colours --if-unused --yes --data ./data")
@click.argument("name")
@click.option("--if-unused", is_flag=True, help="Only if no producer sends to it and no muxer passes on to it.")
@click.option("--if-empty", is_flag=True, help="Only if it has no attachments.")
@destructive_options
@broker_options
@output_option
def delete(
    name: str, if_unused: bool, if_empty: bool, dry_run: bool, url: str | None, data: str | None, output: str
) -> None:
    """Delete the muxer NAME with its attachments.

    Exits 6 if there is no such muxer.
    """
    if dry_run:
        row = _read(name, url, data)
        _check_unused(row, if_unused=if_unused, if_empty=if_empty)
        print_done(f"would delete {_counted(row)}", {"dry_run": True, **row}, output)
        return
    confirm(lambda: f"This deletes the muxer {_counted(_read(name, url, data))}")
    with managed_wiring(url, data) as management:
        management.delete_muxer(name, if_unused=if_unused, if_empty=if_empty)
    print_done(f"deleted {name}", {"name": name, "deleted": True}, output)


def _read(name: str, url: str | None, data: str | None) -> dict[str, Any]:
    """Return the attributes of a muxer; the connection ends before a question is asked."""
    with managed_wiring(url, data) as management:
        return dict(management.muxer(name))


def _check_unused(row: dict[str, Any], *, if_unused: bool, if_empty: bool) -> None:
    """Raise ToolError if the conditions of a deletion are not met, as far as the attributes of the muxer show them."""
    if if_unused and row["producers"]:
        raise ToolError(f"the muxer has {row['producers']:,} producers", where=row["name"])
    if if_empty and row["attachments"]:
        raise ToolError(f"the muxer has {row['attachments']:,} attachments", where=row["name"])


def _counted(row: dict[str, Any]) -> str:
    return f"{row['name']} with {row['attachments']:,} attachments and {row['producers']:,} producers"


def _print_muxers(rows: Iterable[dict[str, Any]], output: str) -> None:
    print_rows(rows if output != "table" else map(_shown, rows), _COLUMNS, output)


def _shown(values: dict[str, Any]) -> dict[str, Any]:
    """Return a muxer's attributes for a table; the probability is text, since a table rounds numbers."""
    probability = values["probability"]
    return values if probability is None else {**values, "probability": str(probability)}


def _print_muxer(values: dict[str, Any], attachments: list[dict[str, Any]], output: str) -> None:
    if output == "json":
        print_values({**values, "members": attachments}, output)
        return
    print_values({name: value for name, value in _shown(values).items() if value is not None}, output)
    if attachments:
        print_line("")
        rows = [{"member": member_text(row), "by": options_text(options_of(row))} for row in attachments]
        print_rows(rows, ("member", "by") if any(row["by"] for row in rows) else ("member",), output)
