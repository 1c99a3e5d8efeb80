"""The options of `ambermq dlq redrive` that edit the messages on the way: `--set`, `--unset`, `--keep-id`."""

import json
import uuid
from collections.abc import Callable
from typing import Any, TypeVar

import click

from ambermq.protocol.amqp10.message.edit import MessageEdit
from ambermq.protocol.amqp10.types.values import UByte

__all__ = ["edit_of", "edit_options"]

_Command = TypeVar("_Command", bound=Callable[..., Any])


def edit_options(command: _Command) -> _Command:
    """Add the options of an edit to a command."""
    values = click.option(
        "--set",
        "changes",
        multiple=True,
        metavar="FIELD=VALUE",
        help="Set a field: an application property, or such as `properties.subject`; may be repeated.",
    )
    removed = click.option(
        "--unset", "removed", multiple=True, metavar="FIELD", help="Remove a field; may be repeated."
    )
    keep_id = click.option("--keep-id", is_flag=True, help="Let edited messages keep their message-ids.")
    return values(removed(keep_id(command)))


def edit_of(changes: tuple[str, ...], removed: tuple[str, ...], *, keep_id: bool) -> dict[str, Any] | None:
    """Return the edit of a command's options, as REDRIVE has it; None without one. Raises UsageError."""
    if not changes and not removed:
        if keep_id:
            raise click.UsageError("--keep-id is for --set and --unset")
        return None
    values = dict(map(_pair, changes))
    try:
        MessageEdit(values, removed).check()
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    identity = {"keep_id": True} if keep_id else {"id_prefix": f"redriven-{uuid.uuid4()}-"}
    return {"set": values, "unset": list(removed), **identity}


def _pair(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise click.UsageError(f"--set {text!r}: expected FIELD=VALUE")
    return name, _value(name, value)


def _value(name: str, text: str) -> Any:
    """Return the value of a field: a text, but for the fields of the header."""
    if not name.startswith("header."):
        return text
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return UByte(value) if type(value) is int and 0 <= value <= 255 else value
