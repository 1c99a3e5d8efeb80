"""`ambermq send`: send messages from the command line, a file or a pipe, and wait for their outcomes."""

import base64
import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import IO, Any, Final, NamedTuple

import click

from ambermq.protocol.amqp10.limits import UINT_MAX
from ambermq.tools.client.broker_option import broker_options, broker_url
from ambermq.tools.client.broker_url import BrokerUrl
from ambermq.tools.client.link_client import LinkClient, created_queue
from ambermq.tools.client.near_queues import near_queues
from ambermq.tools.client.queue_completion import complete_queue
from ambermq.tools.messages.header_options import MessageFields, fields_of, header_options
from ambermq.tools.messages.message_file import message_size, pieces_of
from ambermq.tools.messages.message_input import (
    MEMORY_BYTES_MAX,
    STANDARD_INPUT,
    body_file,
    input_lines,
)
from ambermq.tools.messages.message_text import MessageDraft, draft_bytes, read_draft, with_properties
from ambermq.tools.messages.publisher import Publisher
from ambermq.tools.terminal.errors import ToolError
from ambermq.tools.terminal.exit_codes import ExitCode
from ambermq.tools.terminal.number_range import NumberRange
from ambermq.tools.terminal.output import output_option, print_json, print_line, printable
from ambermq.tools.terminal.progress_counter import ProgressCounter

__all__ = ["send"]

_TOPICS: Final = "/topics/"
_NO_SUBSCRIBER: Final = (
    "no subscription takes what is sent to this topic: subscribe first, for example with `ambermq receive`; "
    "`ambermq route {}` shows what was compared"
)
_UNROUTABLE: Final = (
    "no queue takes what is sent to this address: a topic needs a subscription, a muxer an attachment that matches; "
    "`ambermq route {}` shows what was compared"
)
"""The advice for the outcome released, which has no room for a reason."""

Encode = Callable[[MessageDraft, int], bytes]
"""The encoder of a draft, which has a number."""


class _LargeBody(NamedTuple):
    """A body that is sent from its file, piece by piece."""

    file: IO[bytes]
    bytes_max: int
    """The broker's limit for a message; 0: none."""

    def offer(self, publisher: Publisher, start: bytes, number: int, show: Callable[[int, int], None]) -> None:
        """Send the message of an encoded one without content. Raises ToolError for a message above the limit."""
        size = self.file.seek(0, os.SEEK_END)
        found = message_size(start, size)
        if 0 < self.bytes_max < found:
            where = str(getattr(self.file, "name", ""))
            raise ToolError(
                "the message is too large",
                where=where if where.isprintable() else "",
                expected=f"at most {self.bytes_max:,} bytes",
                found=f"{found:,}",
                code=ExitCode.USAGE,
            )
        sent = 0
        for piece, is_last in pieces_of(start, self.file, size, publisher.piece_bytes):
            if not publisher.offer_piece(piece, number, is_first=not sent, is_last=is_last):
                return
            sent += len(piece)
            show(sent, found)


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
@click.option("--lines", is_flag=True, help="Send each line of --file (default `-`) as a message of its own.")
@click.option("--no-create", is_flag=True, help="Exit 6 if there is no queue at ADDRESS, instead of creating it.")
@click.option("--property", "pairs", multiple=True, metavar="K=V", help="Application property; may be repeated.")
@click.option("--id", "message_id", help="Message-id; with --count they are ID-1, ID-2 and so on.")
@header_options
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
    lines: bool,
    no_create: bool,
    pairs: tuple[str, ...],
    message_id: str | None,
    durable: bool,
    keep_header: bool,
    rate: float | None,
    timeout: float,
    output: str,
    **header: Any,
) -> None:
    """Send messages to ADDRESS and wait until they are accepted.

    The body is BODY, --size, --file, or one message a line with --lines or --ndjson. Exits 1 if a message was not
    accepted. If the command ends early it prints how many were accepted. While the broker holds the command back it
    prints the reason; after --timeout it exits 3. The broker creates a queue at an unknown ADDRESS if it may; the
    command says so on standard error.
    """
    target = BrokerUrl.parse(broker_url(url, data))
    properties, fields = _properties(pairs), fields_of(**header)
    if ndjson and lines:
        raise click.UsageError("give --lines or --ndjson, not both")
    if ndjson or lines:
        if body is not None or size is not None or message_id is not None or count != 1:
            option = "--ndjson" if ndjson else "--lines"
            raise click.UsageError(f"{option} excludes BODY, --size, --id and --count: its lines are the messages")
        path = path or STANDARD_INPUT
    elif [body, size, path].count(None) != 2:
        raise click.UsageError("give one of BODY, --size, --file, --lines and --ndjson")
    with ExitStack() as stack:
        # A file that does not exist, or a message that is too large, fails before a queue is created.
        file = None if path is None or ndjson or lines else stack.enter_context(body_file(path))
        client = stack.enter_context(LinkClient.connect(target))
        with near_queues(client, address):
            link = client.attach_sender(address, must_exist=no_create)
        if created := created_queue(link):
            click.echo(f"created queue {printable(created)!r}", err=True)
        publisher = Publisher(client, link, on_wait=_print_reason, timeout_s=timeout)
        encode = partial(_encoded, durable=durable, keep_header=keep_header)
        large: _LargeBody | None = None
        if path is not None and file is None:
            drafts = _of_lines(path, publisher.wait_readable, is_json=ndjson)
        else:
            content, body_of = _content(body, size, file)
            drafts = _copies(count, message_id, content)
            if body_of is not None:
                bytes_max = 0 if link.remote is None else link.remote.max_message_size or 0
                large = _LargeBody(body_of, bytes_max)
        whole = count if path is None or file is not None else None
        began = time.monotonic()
        with _accepted_count_in_errors(publisher, address), ProgressCounter("sent", whole) as progress:
            _publish(publisher, _with_fields(drafts, properties, fields), encode, progress, rate=rate, large=large)
        _report(publisher, address, time.monotonic() - began, output)


def _content(body: str | None, size: int | None, file: IO[bytes] | None) -> tuple[bytes, IO[bytes] | None]:
    """Return a body; for one that is too large for memory an empty one and its file."""
    if body is not None:
        # Python decodes invalid UTF-8 as surrogates; this restores the bytes of the command line.
        return body.encode(errors="surrogateescape"), None
    if size is not None:
        return b"x" * size, None
    assert file is not None
    if not file.seekable():
        return file.read(), None
    file.seek(0)
    content = file.read(MEMORY_BYTES_MAX + 1)
    return (content, None) if len(content) <= MEMORY_BYTES_MAX else (b"", file)


def _encoded(draft: MessageDraft, number: int, *, durable: bool, keep_header: bool) -> bytes:
    """Return the encoded message of a draft."""
    return draft_bytes(draft, durable=durable, keep_header=keep_header, where=f"message {number + 1}")


def _with_fields(
    drafts: Iterator[MessageDraft], properties: dict[str, str], fields: MessageFields
) -> Iterator[MessageDraft]:
    """Yield drafts with the application properties and the fields of the command's options."""
    for draft in drafts:
        if properties:
            draft.properties = with_properties(draft.properties, properties)
        fields.set_in(draft)
        yield draft


def _print_reason(reason: str) -> None:
    """Print on standard error why no message leaves."""
    click.echo(f"waiting: the broker gives no credit and no outcome ({reason or 'it gave no reason'})", err=True)


def _publish(
    publisher: Publisher,
    drafts: Iterator[MessageDraft],
    encode: Encode,
    progress: ProgressCounter,
    *,
    rate: float | None,
    large: _LargeBody | None = None,
) -> None:
    began = time.monotonic()
    for number, draft in enumerate(drafts):
        if rate:
            publisher.wait_until(began + number / rate)
        if large is None:
            publisher.offer(encode(draft, number), number)
        else:
            large.offer(publisher, encode(draft, number), number, progress.show_bytes)
        progress.show(publisher.sent)
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
        advice = _accepted_before(publisher)
        raise ToolError("interrupted", where=address, advice=advice, code=ExitCode.INTERRUPTED) from error
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
            advice=_why_released(address) if publisher.outcomes["released"] else "",
        )


def _why_released(address: str) -> str:
    return (_NO_SUBSCRIBER if address.startswith(_TOPICS) else _UNROUTABLE).format(address)


def _properties(pairs: tuple[str, ...]) -> dict[str, str]:
    properties = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise click.UsageError(f"--property {pair!r}: expected NAME=VALUE")
        properties[name] = value
    return properties


def _copies(count: int, message_id: str | None, body: bytes) -> Iterator[MessageDraft]:
    """Yield equal messages with different ids."""
    text, encoded = _as_draft_body(body)
    for number in range(1, count + 1):
        numbered = message_id if message_id is None or count == 1 else f"{message_id}-{number}"
        yield MessageDraft(id=numbered, text=text, base64=encoded)


def _as_draft_body(content: bytes) -> tuple[str | None, str | None]:
    try:
        return content.decode(), None
    except UnicodeDecodeError:
        return None, base64.b64encode(content).decode()


def _of_lines(path: str, wait_readable: Callable[[int], None], *, is_json: bool) -> Iterator[MessageDraft]:
    """Yield one message for each line: the line itself, or the message that it is in JSON."""
    for where, line in input_lines(path, wait_readable):
        if not is_json:
            text, encoded = _as_draft_body(line)
            yield MessageDraft(text=text, base64=encoded)
        elif line.strip():
            yield read_draft(line, where)
