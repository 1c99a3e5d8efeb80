"""`ambermq attach` and `ambermq detach`: create and delete attachments."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

from ambermq.engine.errors import EngineError
from ambermq.tools.client.broker_option import broker_options
from ambermq.tools.config.attachment_options import AttachmentOptions, keys_of, options_in, options_text
from ambermq.tools.terminal.errors import ToolError
from ambermq.tools.terminal.exit_codes import ExitCode
from ambermq.tools.terminal.output import output_option, print_json, print_words
from ambermq.tools.wiring.client import managed_wiring

__all__ = ["attach", "detach"]

_Command = TypeVar("_Command", bound=Callable[..., Any])


def _argument_options(command: _Command) -> _Command:
    """Add the options for the argument of an attachment to a command; their names are the keys of a file."""
    for option in (
        click.option("--selector", metavar="EXPR", help="For a selector muxer: an SQL condition, such as 'size > 3'."),
        click.option(
            "--property",
            multiple=True,
            metavar="NAME[=VALUE]",
            help="For a property or wild-property muxer; repeated: all must match. VALUE is a JSON number, true, "
            "false, null or a quoted string; other text is a string: size=3, paid=true, code='\"3\"', region=eu.",
        ),
        click.option(
            "--pattern", metavar="P", help="For a wild-destination muxer: words, * for one word, # for any number."
        ),
        click.option("--destination", metavar="D", help="For a destination muxer: the destination of messages."),
    ):
        command = option(command)
    return command


@click.command(epilog="Example: ambermq attach orders.eu colours --property region=eu --data ./data")
@click.argument("member")
@click.argument("muxer")
@_argument_options
@broker_options
@output_option
def attach(member: str, muxer: str, url: str | None, data: str | None, output: str, **options: Any) -> None:
    """Attach MEMBER, a queue or muxer:NAME, to MUXER.

    The class of the muxer says which option it needs. The command succeeds if the same attachment exists. Several
    attachments of one member are alternatives: a message reaches a queue once.
    """
    attachment_options = _attachment_options(options)
    with managed_wiring(url, data) as management:
        is_new = management.attach(muxer, member, attachment_options)
    _print_attachment(
        output, "attached" if is_new else "exists", muxer, member, attachment_options, {"created": is_new}
    )


@click.command(epilog="Example: ambermq detach orders.eu colours --property region=eu --data ./data")
@click.argument("member", required=False)
@click.argument("muxer", required=False)
@click.option("--id", "attachment", type=click.IntRange(min=0), help="Id of the attachment, instead of its options.")
@_argument_options
@broker_options
@output_option
def detach(
    member: str | None,
    muxer: str | None,
    attachment: int | None,
    url: str | None,
    data: str | None,
    output: str,
    **options: Any,
) -> None:
    """Remove an attachment: MUXER stops sending to MEMBER.

    Name the attachment by the options of `attach`, or by --id. A repair of the log may leave an attachment without its
    member; `muxer show` prints its id. Exits 6 if there is no such attachment.
    """
    attachment_options = _attachment_options(options)
    if attachment is not None:
        _check_id_only(member, attachment_options)
        with managed_wiring(url, data) as management:
            management.detach_id(attachment)
        _print(output, f"detached attachment {attachment}", {"id": attachment, "deleted": True})
        return
    if member is None or muxer is None:
        raise click.UsageError("Missing argument 'MEMBER' or 'MUXER', or the option '--id'.")
    with managed_wiring(url, data) as management:
        management.detach(muxer, member, attachment_options)
    _print_attachment(output, "detached", muxer, member, attachment_options, {"deleted": True})


def _check_id_only(member: str | None, attachment_options: AttachmentOptions) -> None:
    if member is not None or attachment_options.called:
        raise click.UsageError("--id excludes MEMBER, MUXER and the options of the attachment.")


def _attachment_options(options: dict[str, Any]) -> AttachmentOptions:
    try:
        return options_in(options)
    except EngineError as error:
        raise ToolError(str(error), code=ExitCode.USAGE) from error


def _print_attachment(
    output: str, result: str, muxer: str, member: str, attachment_options: AttachmentOptions, values: dict[str, Any]
) -> None:
    by = options_text(attachment_options)
    text = f"{result} {muxer} -> {member}" + (f": {by}" if by else "")
    _print(output, text, {"muxer": muxer, "member": member, **keys_of(attachment_options), **values})


def _print(output: str, text: str, values: dict[str, Any]) -> None:
    if output == "json":
        print_json(values)
    else:
        print_words(text)
