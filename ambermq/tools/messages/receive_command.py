"""`ambermq receive`: print the messages of an address and settle each with one outcome."""

import sys

import click

from ambermq.tools.client.broker_option import broker_options, broker_url
from ambermq.tools.client.broker_url import BrokerUrl
from ambermq.tools.client.link_client import LinkClient
from ambermq.tools.client.queue_completion import complete_queue
from ambermq.tools.messages.message_text import presented, printed_text
from ambermq.tools.messages.subscriber import OUTCOMES, Subscriber
from ambermq.tools.terminal.errors import ToolError
from ambermq.tools.terminal.exit_codes import ExitCode
from ambermq.tools.terminal.number_range import NumberRange
from ambermq.tools.terminal.output import output_option, print_json, print_line, print_words

__all__ = ["receive"]


@click.command(
    epilog="Example: ambermq receive orders --count 10 --timeout 2 --ndjson --data ./data",
)
@click.argument("address", shell_complete=complete_queue)
@broker_options
@click.option("--count", type=click.IntRange(1), help="Stop after N messages. Default: 1, or no limit with --follow.")
@click.option(
    "--timeout",
    type=NumberRange(0),
    default=5.0,
    show_default=True,
    metavar="SECONDS",
    help="Stop if no message arrives for this time.",
)
@click.option("--all", "everything", is_flag=True, help="Receive any number of messages until the timeout.")
@click.option("--follow", is_flag=True, help="Receive until --count is reached or the command is interrupted.")
@click.option(
    "--outcome", type=click.Choice(OUTCOMES), default="accepted", show_default=True, help="Outcome of each message."
)
@click.option("--ndjson", is_flag=True, help="Print whole messages, one JSON object a line; the same as --output json.")
@output_option
def receive(
    address: str,
    url: str | None,
    data: str | None,
    count: int | None,
    timeout: float,
    everything: bool,
    follow: bool,
    outcome: str,
    ndjson: bool,
    output: str,
) -> None:
    """Receive messages from ADDRESS and print them, one a line.

    Bodies are printed as they are; on a terminal control characters are escaped. A message that cannot be decoded is
    printed in hex, with the reason. Exits 3 if the timeout passes before
    --count messages came, or with --all if none came.
    """
    if everything and (follow or count):
        raise click.UsageError("--all excludes --count and --follow")
    if follow and outcome in ("released", "modified"):
        raise click.UsageError(f"--follow with --outcome {outcome} would receive the same messages forever")
    if count is None and not follow and not everything:
        count = 1
    target = BrokerUrl.parse(broker_url(url, data))
    with LinkClient.connect(target) as client:
        subscriber = Subscriber(client, client.attach_receiver(address), outcome)
        try:
            for payload in subscriber.payloads(count=count, idle_seconds=None if follow else timeout):
                _print(payload, as_json=ndjson or output == "json")
        except KeyboardInterrupt:
            if not follow:
                raise
        subscriber.finish()
    if not follow and subscriber.received < (count or 1):
        raise ToolError(
            "not enough messages arrived",
            where=address,
            expected=f"{count or 'at least 1'}, each within {timeout:g} s",
            found=f"{subscriber.received}",
            code=ExitCode.TIMEOUT,
        )


def _print(payload: bytes | memoryview, *, as_json: bool) -> None:
    if as_json:
        print_json(presented(payload))
    elif sys.stdout.isatty():
        print_words(printed_text(payload))  # escaped, so that no producer moves the cursor of this terminal
    else:
        print_line(printed_text(payload))
