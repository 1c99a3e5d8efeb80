"""`ambermq receive`: print the messages of an address and settle each with one outcome."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import click

from ambermq.log.storage.heap import keep_free_memory
from ambermq.tools.client.broker_option import broker_options, broker_url
from ambermq.tools.client.broker_url import BrokerUrl
from ambermq.tools.client.link_client import LinkClient
from ambermq.tools.client.near_queues import near_queues
from ambermq.tools.client.queue_completion import complete_queue
from ambermq.tools.messages.message_file import BodyFile
from ambermq.tools.messages.message_text import presented, printed_text
from ambermq.tools.messages.subscriber import OUTCOMES, Subscriber
from ambermq.tools.terminal.errors import ToolError
from ambermq.tools.terminal.exit_codes import ExitCode
from ambermq.tools.terminal.number_range import NumberRange
from ambermq.tools.terminal.output import output_option, print_json, print_line, print_words
from ambermq.tools.terminal.progress_counter import ProgressCounter

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
@click.option("--to-file", "path", metavar="PATH", help="Write the body of one message to a file, of any size.")
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
    path: str | None,
    ndjson: bool,
    output: str,
) -> None:
    """Receive messages from ADDRESS and print them, one a line.

    The command creates no queue: it exits 6 if there is none at ADDRESS. A topic gets a subscription that
    ends with the command. Bodies are printed as they are; on a terminal control characters are escaped. A message that
    cannot be decoded is printed in hex, with the reason. Exits 3 if the timeout passes before --count messages came, or
    with --all if none came.
    """
    if everything and (follow or count):
        raise click.UsageError("--all excludes --count and --follow")
    if follow and outcome in ("released", "modified"):
        raise click.UsageError(f"--follow with --outcome {outcome} would receive the same messages forever")
    if path is not None and (follow or everything or ndjson or output == "json" or count not in (None, 1)):
        raise click.UsageError("--to-file is about one message: it excludes --count, --all, --follow and JSON")
    if count is None and not follow and not everything:
        count = 1
    target = BrokerUrl.parse(broker_url(url, data))
    with LinkClient.connect(target) as client:
        with near_queues(client, address):
            link = client.attach_receiver(address, must_exist=True)
        subscriber = Subscriber(client, link, outcome)
        with (
            _released_at_interrupt(subscriber),
            ProgressCounter("received", count, is_shown=not sys.stdout.isatty()) as progress,
        ):
            if path is not None:
                keep_free_memory()
                with _body_file(path) as file:
                    subscriber.to_file(file, idle_seconds=timeout, show=progress.show_bytes)
            for payload in (
                () if path is not None else subscriber.payloads(count=count, idle_seconds=None if follow else timeout)
            ):
                _print(payload, as_json=ndjson or output == "json")
                progress.show(subscriber.received)
        subscriber.finish()
    if not follow and subscriber.received < (count or 1):
        raise ToolError(
            "not enough messages arrived",
            where=address,
            expected=f"{count or 'at least 1'}, each within {timeout:g} s",
            found=f"{subscriber.received}",
            code=ExitCode.TIMEOUT,
        )


def _body_file(path: str) -> BodyFile:
    """Return the file that gets a body. Raises ToolError if it cannot be written."""
    try:
        return BodyFile(path)
    except OSError as error:
        raise ToolError(f"cannot write: {error.strerror}", where=path, code=ExitCode.USAGE) from error


@contextmanager
def _released_at_interrupt(subscriber: Subscriber) -> Iterator[None]:
    """Release the messages that were not printed if Ctrl-C ends the block."""
    try:
        yield
    except KeyboardInterrupt:
        # The interrupt may come in the middle of a read: what cannot be released returns when the connection ends.
        with suppress(Exception):
            subscriber.abandon()
        raise


def _print(payload: bytes | memoryview, *, as_json: bool) -> None:
    if as_json:
        print_json(presented(payload))
    elif sys.stdout.isatty():
        print_words(printed_text(payload))  # escaped, so that no producer moves the cursor of this terminal
    else:
        print_line(printed_text(payload))
