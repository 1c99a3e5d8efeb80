"""`ambermq proxy`: record, print and replay AMQP 1.0 connections."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

import click

from ambermq.protocol.amqp10.performatives.classes import COMPOSITES
from ambermq.protocol.amqp10.spec import ARCHETYPES
from ambermq.tools.client.broker_url import BrokerUrl
from ambermq.tools.client.password_option import client_password, password_option
from ambermq.tools.client.tls_option import broker_tls_options, tls_options
from ambermq.tools.proxy.record_command import RecordTask, listen_address, record_until_signal
from ambermq.tools.proxy.recording_file import LEAST_BYTES, open_recording
from ambermq.tools.proxy.replay_command import ReplayTask, replay_recording
from ambermq.tools.proxy.trace import Trace
from ambermq.tools.terminal.errors import TranslatingGroup
from ambermq.tools.terminal.number_range import NumberRange
from ambermq.tools.terminal.output import output_option, print_json, print_line, stream_output_option

__all__ = ["proxy"]

_PERFORMATIVES: Final = [
    composite.TYPE
    for composite in COMPOSITES.values()
    if composite.TYPE in ARCHETYPES["frame"] or composite.TYPE in ARCHETYPES["sasl-frame"]
]
_NAMES: Final = [*_PERFORMATIVES, "header", "heartbeat", "unreadable", "connected", "ended", "limit", "end"]
_BYTES_MAX: Final = 1 << 30
_CONNECTIONS_MAX: Final = 1_000


@click.group(cls=TranslatingGroup, epilog="Example: ambermq proxy print session.rec --only attach")
def proxy() -> None:
    """Record, print and replay AMQP 1.0 connections of any client.

    A recording has everything that its clients sent, passwords included. Its file has the mode 0600.
    """


@proxy.command(
    "record",
    epilog="Example: ambermq proxy record --listen 127.0.0.1:5673 --to amqp://127.0.0.1:5672 session.rec",
)
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--listen",
    required=True,
    metavar="ADDRESS",
    help="Address for the clients: [amqp[s]://]HOST:PORT; port 0 takes a free one.",
)
@click.option("--to", "target", required=True, metavar="URL", help="Broker, as amqp[s]://HOST:PORT.")
@click.option("--tls-cert", default="", metavar="FILE", help="Certificate of an amqps:// listener and its chain (PEM).")
@click.option("--tls-key", default="", metavar="FILE", help="Private key of --tls-cert (PEM).")
@broker_tls_options
@click.option("--print", "is_printed", is_flag=True, help="Print the trace while it is recorded.")
@click.option(
    "--bytes-max",
    type=click.IntRange(LEAST_BYTES),
    default=_BYTES_MAX,
    show_default=True,
    metavar="BYTES",
    help="Maximum size of FILE; then clients are relayed and not recorded.",
)
@click.option(
    "--connections-max",
    type=click.IntRange(1),
    default=_CONNECTIONS_MAX,
    show_default=True,
    help="Connections at one time; each takes up to 512 KiB of memory. More are reset.",
)
@output_option
def record(
    file: Path,
    listen: str,
    target: str,
    tls_cert: str,
    tls_key: str,
    is_printed: bool,
    bytes_max: int,
    connections_max: int,
    output: str,
) -> None:
    """Record all connections through a listener into FILE.

    The bytes of clients and broker are not changed; with TLS, FILE has them decrypted. SIGINT (Ctrl-C) or SIGTERM ends
    the recording. A recording whose proxy was killed is readable up to its last whole record.
    """
    host, port, is_secure = listen_address(listen)
    url = BrokerUrl.parse(target)
    if url.is_unix:
        raise click.UsageError("--to needs a broker behind TCP: amqp[s]://HOST:PORT")
    limits = (bytes_max, connections_max)
    record_until_signal(RecordTask(host, port, url, file, *limits, is_printed, output, is_secure, tls_cert, tls_key))


@proxy.command("print", epilog="Example: ambermq proxy print session.rec --connection 1 --only attach --only detach")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--connection", "connections", type=click.IntRange(1), multiple=True, help="Only connection N.")
@click.option("--only", "names", type=click.Choice(_NAMES), multiple=True, metavar="NAME", help="Only this frame.")
@stream_output_option
def print_(file: Path, connections: tuple[int, ...], names: tuple[str, ...], output: str) -> None:
    """Print the frames of a recording, one a line.

    SEND is a frame of the client, RECV one of the broker. Passwords and tokens are masked. `--output json` or `ndjson`
    prints one document a line. Exits 5 if FILE is damaged.
    """
    _print_recording(file, connections=connections, names=names, output=output)


@proxy.command("replay", epilog="Example: ambermq proxy replay session.rec --to amqp://127.0.0.1:5672")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--to", "target", required=True, metavar="URL", help="Broker, as amqp[s]://[USER[:PASSWORD]@]HOST:PORT.")
@password_option
@tls_options
@click.option("--connection", "connections", type=click.IntRange(1), multiple=True, help="Only connection N.")
@click.option(
    "--speed",
    type=NumberRange(0),
    default=0.0,
    show_default=True,
    help="Speed: 1 as recorded, 2 twice as fast; 0 without pauses.",
)
@click.option(
    "--timeout",
    type=NumberRange(0, min_open=True),
    default=10.0,
    show_default=True,
    metavar="SECONDS",
    help="Timeout of each frame of the broker.",
)
@output_option
def replay(file: Path, target: str, connections: tuple[int, ...], speed: float, timeout: float, output: str) -> None:
    """Send what the clients of a recording sent to another broker.

    A frame is sent when all frames have come that the broker of the recording sent before it. Exits 1 at the first
    difference, with a message that says what was expected and what came. A user in the URL logs in anew; without one
    the recorded login is sent again.
    """
    url = BrokerUrl.parse(target)
    url = replace(url, password=client_password(url))
    replay_recording(ReplayTask(file, url, frozenset(connections), speed, timeout, output))


def _print_recording(path: Path, *, connections: Sequence[int], names: Sequence[str], output: str) -> None:
    """Print the lines of the chosen connections and names; empty sequences choose all."""
    trace = Trace()
    with open_recording(path) as reader:
        for record in reader:
            if connections and record.connection not in connections:
                continue
            for line in trace.lines(record):
                if names and line.name not in names:
                    continue
                if output != "table":
                    print_json(line.document)
                else:
                    print_line(line.line)
        if not reader.is_ended and output == "table" and not names:
            print_line("(the recording has no end: it is in progress, or its proxy was killed)")
