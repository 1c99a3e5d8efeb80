"""`ambermq route`: show the route of a message. Nothing is sent."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import click

from ambermq.engine.errors import EngineError
from ambermq.engine.model.condition_text import parse_condition
from ambermq.tools.client.broker_option import (
    broker_of_directory,
    broker_options,
    vhost_directory,
)
from ambermq.tools.client.named_place import named_place
from ambermq.tools.config.attachment_options import member_text, options_of, options_text
from ambermq.tools.past.low_priority import lower_priority
from ambermq.tools.past.moment_option import at_option
from ambermq.tools.terminal.errors import ToolError
from ambermq.tools.terminal.exit_codes import ExitCode
from ambermq.tools.terminal.output import output_option, print_json, print_words
from ambermq.tools.wiring.client import managed_wiring

__all__ = ["route"]

_RESULTS_MAX: Final = 1000
"""Of attachments and queues; the same limit as the broker's."""


@click.command(epilog="Example: ambermq route /muxers/colours --property colour=red --data ./data")
@click.argument("address")
@click.option(
    "--property",
    "properties",
    multiple=True,
    metavar="NAME=VALUE",
    help="Application property, written as for attach; annotations.NAME and header.NAME name other sections.",
)
@click.option("--to", metavar="TO", help="The message's `to`: its destination if ADDRESS has none.")
@click.option("--subject", metavar="S", help="The message's subject: its destination if it has no `to`.")
@at_option
@click.option(
    "--config",
    metavar="FILE",
    help="Configuration file of the broker, for --at or a stopped broker. Default: every key has its default.",
)
@broker_options
@output_option
def route(
    address: str,
    properties: tuple[str, ...],
    to: str | None,
    subject: str | None,
    config: str | None,
    at: str | None,
    url: str | None,
    data: str | None,
    output: str,
) -> None:
    """Show where a message to ADDRESS would go, and why.

    The answer has each muxer on the way and each attachment that matches. Nothing is sent or created. A LOSSY muxer
    does not draw: the answer has its probability. An empty ADDRESS is the anonymous terminus. With the --data of a
    stopped broker the command reads the log.
    """
    fields = _fields(properties, to, subject)
    is_past = at is not None or _is_stopped(url, data)
    if config is not None and not is_past:
        raise click.UsageError("--config needs --at or a stopped broker: a running broker has its own configuration.")
    if not is_past:
        with managed_wiring(url, data) as management:
            result = management.route(address, fields)
    else:
        lower_priority()
        from ambermq.tools.config.resolution import load_settings  # noqa: PLC0415 - as the import below
        from ambermq.tools.config.settings import Settings  # noqa: PLC0415 - as the import below
        from ambermq.tools.wiring.past_wiring import route_at  # noqa: PLC0415 - an import of 0.25 s that only the past needs

        settings = Settings() if config is None else load_settings(config)
        result = route_at(url, data, at or "now", address, fields, _RESULTS_MAX, settings.engine)
    if output == "json":
        print_json({"address": address, **result}, indent=True)
    else:
        for line in _lines(result, has_default_config=is_past and config is None):
            print_words(line)


def _fields(properties: tuple[str, ...], to: str | None, subject: str | None) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for text in properties:
        try:
            condition = parse_condition(text)
        except EngineError as error:
            raise ToolError(str(error), code=ExitCode.USAGE) from error
        if not condition.has_value:
            raise ToolError("the property has no value", where=text, expected=f"{text}=VALUE", code=ExitCode.USAGE)
        fields[condition.name] = condition.value
    named = {"properties.to": to, "properties.subject": subject}
    return fields | {name: value for name, value in named.items() if value is not None}


def _is_stopped(url: str | None, data: str | None) -> bool:
    """Return whether the options or the environment name a directory without a running broker."""
    directory = named_place(url, data).data
    return bool(directory) and broker_of_directory(vhost_directory(directory)) is None


def _lines(result: Mapping[str, Any], *, has_default_config: bool) -> Iterator[str]:
    """Yield the route as lines: each muxer with its attachments, then the queues.

    `has_default_config`: the broker's configuration is unknown.
    """
    if result["creates"] is not None:
        by = " (by the default configuration: --config names the broker's)" if has_default_config else ""
        yield f"queue {result['creates']} does not exist: a link would create it, attached to QUEUE by its name{by}"
    for hop in result["hops"]:
        yield _muxer_line(hop, result["destination"])
        for row in hop["attachments"]:
            by = options_text(options_of(row))
            member = member_text(row)
            if row["member"] is not None:
                member = member.replace("muxer:", "muxer ", 1) if member.startswith("muxer:") else f"queue {member}"
            yield f"  to {member}" + (f": {by}" if by else "")
        if len(hop["attachments"]) < hop["matched"]:
            yield f"  and {hop['matched'] - len(hop['attachments']):,} more"
    queues = [*result["queues"], *([result["creates"]] if result["creates"] is not None else [])]
    count = result["queue_count"] + (result["creates"] is not None)
    more = f" and {count - len(queues):,} more" if count > len(queues) else ""
    shown = f"{count:,} {'queue' if count == 1 else 'queues'}: {', '.join(queues)}{more}"
    yield f"reaches {shown if count else 'no queue'}"


def _muxer_line(hop: Mapping[str, Any], destination: str) -> str:
    is_by_destination = hop["class"] in ("destination", "wild-destination")
    text = f" for {destination!r}" if is_by_destination else ""
    if hop["probability"] is not None:
        text = f" passes it on with probability {hop['probability']}"
    return f"muxer {hop['muxer']} ({hop['class']}){text}" + ("" if hop["matched"] else ": nothing matches")
