"""`ambermq send`: send messages from the command line, a file or a pipe, and wait for their outcomes."""

import base64
import os
import select
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import click

from ambermq.protocol.amqp10.limits import UINT_MAX
from ambermq.tools.client.broker_option import broker_options, broker_url
from ambermq.tools.client.broker_url import BrokerUrl
from ambermq.tools.client.link_client import LinkClient
from ambermq.tools.client.queue_completion import complete_queue
from ambermq.tools.messages.message_text import MessageDraft, draft_bytes, read_draft, with_properties
from ambermq.tools.messages.publisher import Publisher
from ambermq.tools.terminal.errors import ToolError
from ambermq.tools.terminal.exit_codes import ExitCode
from ambermq.tools.terminal.number_range import NumberRange
from ambermq.tools.terminal.output import output_option, print_json, print_line

__all__ = ["send"]

_READ_BYTES: Final = 64 * 1024
_STANDARD_INPUT: Final = "-"
_UNROUTABLE: Final = (
    "no queue takes what is sent to this address: a topic needs a subscription, a muxer an attachment that matches; "
    "`ambermq route {}` shows what was compared"
)
"""The advice for the outcome released, which has no room for a reason."""


@click.command(
    epilog="Example: ambermq send orders 'hello' --property region=eu --url amqp://127.0.0.1:5672",
)
@click.argument("address", shell_complete=complete_queue)
@click.argument("body", required=False)
@broker_options
@click.option("--count", type=click.IntRange(1), default=1, show_default=True, help="Send the message N times.")
@click.option(
    "--size",
    type=click.IntRange(0, UINT_MAX),
    metavar="BYTES",
    help="Send a body of this size in bytes instead of BODY.",
)
@click.option(
    "--file", "path", metavar="PATH", help="Read the body from a file instead of BODY; `-` is standard input."
)
@click.option(
    "--ndjson", is_flag=True, help="Read one message a line from --file (default `-`), as `receive` prints them."
)
@click.option("--property", "pairs", multiple=True, metavar="K=V", help="Application property; may be repeated.")
@click.option("--id", "message_id", help="Message-id; with --count they are ID-1, ID-2 and so on.")
@click.option("--durable/--no-durable", default=True, show_default=True, help="Send durable messages.")
@click.option(
    "--keep-header", is_flag=True, help="With --ndjson also send the lines' delivery counts and delivery annotations."
)
@click.option("--rate", type=NumberRange(0, min_open=True), metavar="N", help="Maximum messages a second.")
@click.option(
    "--timeout",
    type=NumberRange(0),
    default=30.0,
    show_default=True,
    metavar="SECONDS",
    help="Stop if the broker gives no credit and no outcome for so long; 0 waits forever.",
)
@output_option
def send(
    address: str,
    body: str | None,
    url: str | None,
    data: str | None,
    count: int,
    size: int | None,
    path: str | None,
    ndjson: bool,
    pairs: tuple[str, ...],
    message_id: str | None,
    durable: bool,
    keep_header: bool,
    rate: float | None,
    timeout: float,
    output: str,
) -> None:
    """Send messages to ADDRESS and wait until they are accepted.

    The body is BODY, --size, --file, or one message a line with --ndjson. Exits 1 if a message was not accepted. If the
    command ends early it prints how many were accepted. While the broker holds the command back it prints the reason;
    after --timeout it exits 3.
    """
    target = BrokerUrl.parse(broker_url(url, data))
    properties = _properties(pairs)
    if ndjson:
        if body is not None or size is not None or message_id is not None or count != 1:
            raise click.UsageError("--ndjson excludes BODY, --size, --id and --count: its lines have them")
        path = path or _STANDARD_INPUT
    elif [body, size, path].count(None) != 2:
        raise click.UsageError("give one of BODY, --size, --file and --ndjson")
    with LinkClient.connect(target) as client:
        publisher = Publisher(client, client.attach_sender(address), on_wait=_print_reason, timeout_s=timeout)
        if ndjson and path:
            drafts = _read_drafts(path, publisher.wait_readable)
        else:
            drafts = _copies(_content(body, size, path), count, message_id)
        began = time.monotonic()
        with _accepted_count_in_errors(publisher, address):
            _publish(publisher, drafts, properties, durable=durable, keep_header=keep_header, rate=rate)
        _report(publisher, address, time.monotonic() - began, output)


def _print_reason(reason: str) -> None:
    """Print on standard error why no message leaves."""
    click.echo(f"waiting: the broker gives no credit and no outcome ({reason or 'it gave no reason'})", err=True)


def _publish(
    publisher: Publisher,
    drafts: Iterator[MessageDraft],
    properties: dict[str, str],
    *,
    durable: bool,
    keep_header: bool,
    rate: float | None,
) -> None:
    began = time.monotonic()
    for number, draft in enumerate(drafts):
        if properties:
            draft.properties = with_properties(draft.properties, properties)
        if rate:
            publisher.wait_until(began + number / rate)
        payload = draft_bytes(draft, durable=durable, keep_header=keep_header, where=f"message {number + 1}")
        publisher.offer(payload, number)
    publisher.finish()


@contextmanager
def _accepted_count_in_errors(publisher: Publisher, address: str) -> Iterator[None]:
    """Add the number of accepted messages to errors, so that a second run does not send them again.

    After an error in the input it waits for all outcomes, so the number is final. After other errors it is the number
    so far.
    """
    try:
        yield
    except KeyboardInterrupt as error:
        if not publisher.sent:
            raise
        raise ToolError("interrupted", where=address, advice=_accepted_before(publisher)) from error
    except ToolError as error:
        if not publisher.sent:
            raise
        if error.exit_code == ExitCode.USAGE:
            publisher.finish()
        raise ToolError(error.message, advice=_accepted_before(publisher), code=ExitCode(error.exit_code)) from error


def _accepted_before(publisher: Publisher) -> str:
    return f"before that {publisher.outcomes['accepted']:,} of {publisher.sent:,} sent messages were accepted"


def _report(publisher: Publisher, address: str, seconds: float, output: str) -> None:
    accepted, sent = publisher.outcomes["accepted"], publisher.sent
    if output == "json":
        print_json({"address": address, "sent": sent, "seconds": round(seconds, 6), **publisher.outcomes})
    elif accepted == sent:
        print_line(f"accepted {accepted:,} of {sent:,} in {seconds:.3f} s")
    if accepted != sent:
        others = ", ".join(f"{number} {name}" for name, number in sorted(publisher.outcomes.items()))
        raise ToolError(
            "not every message was accepted",
            where=address,
            expected=f"{sent} accepted",
            found=f"{others}{f' ({publisher.refusal})' if publisher.refusal else ''}",
            advice=_UNROUTABLE.format(address) if publisher.outcomes["released"] else "",
        )


def _properties(pairs: tuple[str, ...]) -> dict[str, str]:
    properties = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise click.UsageError(f"--property {pair!r}: expected NAME=VALUE")
        properties[name] = value
    return properties


def _content(body: str | None, size: int | None, path: str | None) -> bytes:
    if body is not None:
        # Python decodes invalid UTF-8 as surrogates; this restores the bytes of the command line.
        return body.encode(errors="surrogateescape")
    if size is not None:
        return b"x" * size
    assert path is not None
    return sys.stdin.buffer.read() if path == _STANDARD_INPUT else Path(path).read_bytes()


def _copies(content: bytes, count: int, message_id: str | None) -> Iterator[MessageDraft]:
    """Yield equal messages with different ids."""
    text, encoded = _as_draft_body(content)
    for number in range(1, count + 1):
        numbered = message_id if message_id is None or count == 1 else f"{message_id}-{number}"
        yield MessageDraft(id=numbered, text=text, base64=encoded)


def _as_draft_body(content: bytes) -> tuple[str | None, str | None]:
    try:
        return content.decode(), None
    except UnicodeDecodeError:
        return None, base64.b64encode(content).decode()


def _read_drafts(path: str, wait_readable: Callable[[int], None]) -> Iterator[MessageDraft]:
    """Yield one message for each line; the wait for a pipe sends heartbeats."""
    descriptor = 0 if path == _STANDARD_INPUT else os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    name = "standard input" if path == _STANDARD_INPUT else path
    try:
        for number, line in enumerate(_lines(descriptor, wait_readable), start=1):
            if line.strip():
                yield read_draft(line, f"{name}, line {number}")
    finally:
        if path != _STANDARD_INPUT:
            os.close(descriptor)


def _lines(descriptor: int, wait_readable: Callable[[int], None]) -> Iterator[bytes]:
    # A line may be as large as a message, so its pieces are joined once.
    pieces: list[bytes] = []
    while True:
        wait_readable(descriptor)
        if not select.select([descriptor], [], [], 0)[0]:
            continue
        chunk = os.read(descriptor, _READ_BYTES)
        first, *lines = chunk.split(b"\n")
        pieces.append(first)
        if lines or not chunk:
            yield b"".join(pieces)
            pieces = lines[-1:]
            yield from lines[:-1]
        if not chunk:
            return
