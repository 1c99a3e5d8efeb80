"""`ambermq wiring diff` and `ambermq wiring apply`: compare a file of wiring with a broker, and apply the file.

Rule 1. A dry run of the whole file comes first (plan.py), so that an impossible change is refused before any request.
Rule 2. Each change is one request, in order, several in flight. Additions are done before removals.
Rule 3. The broker may refuse a change after others, for its limits or because of another client. The command then
        prints the changes that are done and stops. A second run does the rest.
"""

from collections.abc import Mapping
from itertools import groupby
from pathlib import Path
from typing import Any

import click

from ambermq.engine.address import member_address
from ambermq.tools.client.broker_option import broker_options
from ambermq.tools.client.management_client import Request, queue_declaration, queue_deletion, queue_update
from ambermq.tools.config.attachment_options import keys_of
from ambermq.tools.terminal.errors import ToolError
from ambermq.tools.terminal.exit_codes import ExitCode
from ambermq.tools.terminal.output import output_option, print_json, print_line, print_words
from ambermq.tools.wiring.client import (
    WiringManagement,
    attachment_declaration,
    attachment_deletion,
    managed_wiring,
    muxer_declaration,
    muxer_deletion,
    muxer_update,
    options_given,
)
from ambermq.tools.wiring.document import AttachmentEntry, MuxerEntry, QueueEntry, Wiring, check_suffix, read_wiring
from ambermq.tools.wiring.dry_run import templates_of
from ambermq.tools.wiring.plan import Change, ChangeKind, Plan, plan_for
from ambermq.tools.wiring.rows import WiringRows

__all__ = ["apply", "diff"]


@click.command("diff", epilog="Example: ambermq wiring diff wiring.toml --data ./data")
@click.argument("file")
@broker_options
@output_option
def diff(file: str, url: str | None, data: str | None, output: str) -> None:
    """Print the differences between the broker and FILE.

    + is only in the file, - is only on the broker, ~ differs and can be changed, ! differs and cannot be changed. Exits
    8 if anything differs.
    """
    wanted = _read(file)
    with managed_wiring(url, data) as management:
        plan = _plan(management, wanted, file, prunes=False)[0]
    _print_plan(plan.changes, output)
    _exit_different(bool(plan.changes))


@click.command("apply", epilog="Example: ambermq wiring apply wiring.toml --dry-run --data ./data")
@click.argument("file")
@click.option("--prune", is_flag=True, help="Remove what FILE does not name; queues and muxers only if unused.")
@click.option("--dry-run", is_flag=True, help="Print the changes and do nothing; exits 8 if there are any.")
@broker_options
@output_option
def apply(file: str, prune: bool, dry_run: bool, url: str | None, data: str | None, output: str) -> None:
    """Apply the wiring in FILE to the broker and print each change.

    The command checks the whole file first, and changes nothing if a part of it cannot be done. What the broker has
    already stays. It removes nothing without --prune.
    """
    wanted = _read(file)
    with managed_wiring(url, data) as management:
        plan, present = _plan(management, wanted, file, prunes=prune)
        _check_conflicts(plan, file)
        changes = plan.changes if prune else plan.of(ChangeKind.ADD, ChangeKind.UPDATE)
        if prune:
            _check_unused(plan, present)
        if not dry_run:
            _do_all(management, changes, output)
    _print_plan(changes, output)
    _exit_different(dry_run and bool(changes))


def _read(file: str) -> Wiring:
    check_suffix(file)
    try:
        return read_wiring(Path(file).read_text(encoding="utf-8"), file)
    except UnicodeDecodeError as error:
        raise ToolError("the file is invalid", where=file, expected="UTF-8", code=ExitCode.USAGE) from error


def _plan(management: WiringManagement, wanted: Wiring, file: str, *, prunes: bool) -> tuple[Plan, WiringRows]:
    present = WiringRows(list(management.muxers()), list(management.queues()), list(management.attachments()))
    templates, limits = templates_of(management.templates()), management.limits()
    return plan_for(present, wanted, templates, path=file, prunes=prunes, limits=limits), present


def _check_conflicts(plan: Plan, file: str) -> None:
    conflicts = plan.of(ChangeKind.CONFLICT)
    if conflicts:
        more = f" (and {len(conflicts) - 1} more)" if len(conflicts) > 1 else ""
        raise ToolError(
            f"{conflicts[0].reason}{more}; nothing was changed",
            where=file,
            advice="delete it and apply again, or change the file",
        )


def _check_unused(plan: Plan, present: WiringRows) -> None:
    """Raise ToolError if a queue or muxer to remove is in use; nothing is changed then."""
    used = {f"queue {member_address(row['name'])}": _use_of_queue(row) for row in present.queues}
    used |= {f"muxer {row['name']}": f"{row['producers']} producers" for row in present.muxers if row["producers"]}
    queues = {change.entry.name for change in plan.of(ChangeKind.REMOVE) if isinstance(change.entry, QueueEntry)}
    muxers = {change.entry.name for change in plan.of(ChangeKind.REMOVE) if isinstance(change.entry, MuxerEntry)}
    for name in [*(f"queue {name}" for name in queues), *(f"muxer {name}" for name in muxers)]:
        if used.get(name):
            advice = "add it to the file, or empty it first"
            raise ToolError(f"{name} is in use, it has {used[name]}; nothing was changed", advice=advice)


def _use_of_queue(row: Mapping[str, Any]) -> str:
    counts = {"messages": row["available"] + row["acquired"], "consumers": row["consumers"]}
    return " and ".join(f"{count:,} {noun}" for noun, count in counts.items() if count)


def _do_all(management: WiringManagement, changes: tuple[Change, ...], output: str) -> None:
    """Apply all changes in order; at a refusal print those that are done, and raise it with the number left."""
    done: list[Change] = []
    try:
        for _, group in groupby(changes, key=_stage):
            _do_stage(management, tuple(group), done, left=len(changes) - len(done))
    except ToolError:
        if done:
            _print_plan(tuple(done), output)
        raise


def _stage(change: Change) -> tuple[bool, str]:
    """Return the key of changes that may be in flight together; removals come after all additions."""
    return change.kind is ChangeKind.REMOVE, change.noun


def _do_stage(management: WiringManagement, changes: tuple[Change, ...], done: list[Change], *, left: int) -> None:
    """Apply the changes of a stage, several in flight; append to `done`, and raise the first refusal."""
    first, before = None, len(done)
    for change, refusal in zip(changes, management.carry_out([_request(one) for one in changes]), strict=False):
        if refusal is None:
            done.append(change)
        first = first or refusal
    if first is not None:
        left -= len(done) - before
        advice = f"{left} {'change was' if left == 1 else 'changes were'} not done: correct this and apply again"
        raise ToolError(first.message, advice=advice, code=ExitCode(first.exit_code))


def _request(change: Change) -> Request:
    is_added = change.kind is ChangeKind.ADD
    if change.kind is ChangeKind.UPDATE:
        return _update(change)
    match change.entry:
        case MuxerEntry(name, kind, options):
            return muxer_declaration(name, kind, options) if is_added else muxer_deletion(name, if_unused=True)
        case QueueEntry(name, template, settings):
            if is_added:
                return queue_declaration(name, settings, template=template)
            return queue_deletion(name, if_unused=True, if_empty=True)
        case AttachmentEntry(muxer, member, attachment_options):
            return (
                attachment_declaration(muxer, member, attachment_options)
                if is_added
                else attachment_deletion(muxer, member, attachment_options)
            )


def _update(change: Change) -> Request:
    wanted = {name: after for name, (_, after) in change.values.items()}
    if isinstance(change.entry, MuxerEntry):
        return muxer_update(change.entry.name, **wanted)
    assert isinstance(change.entry, QueueEntry), "no attachment is updated"
    return queue_update(change.entry.name, wanted)


def _print_plan(changes: tuple[Change, ...], output: str) -> None:
    if output == "json":
        print_json([_values(change) for change in changes], indent=True)
        return
    for change in changes:
        print_words(f"{change.sign} {change.text}")
    if not changes:
        print_line("no differences")


def _values(change: Change) -> dict[str, Any]:
    match change.entry:
        case MuxerEntry(name, kind, options):
            shown: dict[str, Any] = {"name": name, "class": kind.text, **options_given(options)}
        case QueueEntry():
            shown = {name: value for name, value in change.entry._asdict().items() if value is not None}
        case AttachmentEntry(muxer, member, attachment_options):
            shown = {"muxer": muxer, "member": member, **keys_of(attachment_options)}
    values = {name: {"before": before, "after": after} for name, (before, after) in change.values.items()}
    more = {"reason": change.reason, "values": values}
    return {"change": str(change.kind), "what": change.noun, **shown, **{key: one for key, one in more.items() if one}}


def _exit_different(is_different: bool) -> None:
    if is_different:
        click.get_current_context().exit(ExitCode.DIFFERENT)
