"""`ambermq wiring diff` and `ambermq wiring apply`: a file that says what there shall be, against what there is.

Rule 1. All of it is rehearsed before anything is done (wiring_plan.py), so that what cannot be is told beforehand.
Rule 2. Applying is a request a change, in order, some of them under way at once; all that comes is there before
        anything goes. What only the broker's own limits refuse, or what somebody changes meanwhile, ends it there:
        what was done is told, and applying again goes on behind it.
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
    attaching,
    declaring_muxer,
    deleting_muxer,
    detaching,
    managed_wiring,
    options_given,
    updating_muxer,
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
        raise ToolError("the file is wrong", where=file, expected="UTF-8", code=ExitCode.USAGE) from error


def _plan(management: WiringManagement, wanted: Wiring, file: str, *, prunes: bool) -> tuple[Plan, WiringRows]:
    present = WiringRows(list(management.muxers()), list(management.queues()), list(management.attachments()))
    templates, limits = templates_of(management.templates()), management.limits()
    return plan_for(present, wanted, templates, path=file, prunes=prunes, limits=limits), present


def _check_conflicts(plan: Plan, file: str) -> None:
    conflicts = plan.of(ChangeKind.CONFLICT)
    if conflicts:
        more = f" (and {len(conflicts) - 1} more)" if len(conflicts) > 1 else ""
        raise ToolError(
            f"{conflicts[0].reason}{more}; nothing was done",
            where=file,
            advice="delete it and apply again, or change the file",
        )


def _check_unused(plan: Plan, present: WiringRows) -> None:
    """Raise ToolError where a queue or muxer that shall go is in use: then nothing is done."""
    used = {f"queue {member_address(row['name'])}": _use_of_queue(row) for row in present.queues}
    used |= {f"muxer {row['name']}": f"{row['producers']} producers" for row in present.muxers if row["producers"]}
    queues = {change.entry.name for change in plan.of(ChangeKind.REMOVE) if isinstance(change.entry, QueueEntry)}
    muxers = {change.entry.name for change in plan.of(ChangeKind.REMOVE) if isinstance(change.entry, MuxerEntry)}
    for name in [*(f"queue {name}" for name in queues), *(f"muxer {name}" for name in muxers)]:
        if used.get(name):
            advice = "name it in the file, or empty it first"
            raise ToolError(f"{name} is in use, it has {used[name]}; nothing was done", advice=advice)


def _use_of_queue(row: Mapping[str, Any]) -> str:
    counts = {"messages": row["available"] + row["acquired"], "consumers": row["consumers"]}
    return " and ".join(f"{count:,} {noun}" for noun, count in counts.items() if count)


def _do_all(management: WiringManagement, changes: tuple[Change, ...], output: str) -> None:
    """Do them in order; where one is refused after all, what was done is told first, and how many were not."""
    done: list[Change] = []
    try:
        for _, group in groupby(changes, key=_stage):
            _do_stage(management, tuple(group), done, left=len(changes) - len(done))
    except ToolError:
        if done:
            _print_plan(tuple(done), output)
        raise


def _stage(change: Change) -> tuple[bool, str]:
    """Return what tells changes apart that depend on each other: nothing goes before all that comes is there."""
    return change.kind is ChangeKind.REMOVE, change.noun


def _do_stage(management: WiringManagement, changes: tuple[Change, ...], done: list[Change], *, left: int) -> None:
    """Do changes that are alike, some at once; adds to `done`, also where it raises the first refusal."""
    first, before = None, len(done)
    for change, refusal in zip(changes, management.carry_out([_request(one) for one in changes]), strict=False):
        if refusal is None:
            done.append(change)
        first = first or refusal
    if first is not None:
        left -= len(done) - before
        advice = f"{left} {'change was' if left == 1 else 'changes were'} not done: apply again when that is mended"
        raise ToolError(first.message, advice=advice, code=ExitCode(first.exit_code))


def _request(change: Change) -> Request:
    is_added = change.kind is ChangeKind.ADD
    if change.kind is ChangeKind.UPDATE:
        return _update(change)
    match change.entry:
        case MuxerEntry(name, kind, options):
            return declaring_muxer(name, kind, options) if is_added else deleting_muxer(name, if_unused=True)
        case QueueEntry(name, template, messages_max):
            if is_added:
                return queue_declaration(name, messages_max=messages_max, template=template)
            return queue_deletion(name, if_unused=True, if_empty=True)
        case AttachmentEntry(muxer, member, said):
            return attaching(muxer, member, said) if is_added else detaching(muxer, member, said)


def _update(change: Change) -> Request:
    wanted = {name: after for name, (_, after) in change.values.items()}
    if isinstance(change.entry, MuxerEntry):
        return updating_muxer(change.entry.name, **wanted)
    assert isinstance(change.entry, QueueEntry), "an attachment is what it says"
    return queue_update(change.entry.name, **wanted)


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
            told: dict[str, Any] = {"name": name, "class": kind.text, **options_given(options)}
        case QueueEntry():
            told = {name: value for name, value in change.entry._asdict().items() if value is not None}
        case AttachmentEntry(muxer, member, said):
            told = {"muxer": muxer, "member": member, **keys_of(said)}
    values = {name: {"before": before, "after": after} for name, (before, after) in change.values.items()}
    more = {"reason": change.reason, "values": values}
    return {"change": str(change.kind), "what": change.noun, **told, **{key: one for key, one in more.items() if one}}


def _exit_different(is_different: bool) -> None:
    if is_different:
        click.get_current_context().exit(ExitCode.DIFFERENT)
