"""`python -m tests.golden.clients.record [CLIENT...]`: record the default messages of the clients of the matrix.

Each client's driver sends them to a broker through a relay, which keeps the bytes. A recorded file is replaced: run
this where a client has a new version, or where a kind of message is added to the drivers.
"""

import argparse
import re
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from ambermq.protocol.amqp10.framing.frames import decode_frame_body
from ambermq.protocol.amqp10.performatives.classes import Attach, Transfer
from ambermq.protocol.amqp10.types.values import Described
from ambermq.tools.broker.child_broker import ChildBroker
from tests.golden.clients import CLIENT_DIRECTORY, ClientMessage
from tests.golden.clients.relay import Relay
from tests.interop.matrix.cells import Verdict, read_cell
from tests.interop.matrix.client import Client
from tests.interop.matrix.clients import CLIENTS
from tests.interop.matrix.driver import Driver

__all__ = ["main"]

_BEHAVIOUR: Final = "default-messages"
_KIND: Final = re.compile(r"[a-z]+(-[a-z]+)*")
"""The address of a queue of this behaviour; other links, of requests for instance, have other addresses."""


class RecordFailed(Exception):
    """A client could not be driven; the message says why."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Record the clients that are named, or all but the frameworks; return 1 where one failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.golden.clients.record", description=__doc__)
    parser.add_argument("client", nargs="*", help="names of the matrix; default: all")
    names = parser.parse_args(arguments).client
    failed = False
    for client in CLIENTS:
        if client.is_framework or (names and client.name not in names):
            continue
        try:
            messages = _record(client)
        except RecordFailed as failure:
            print(f"{client.name}: recording failed: {failure}", file=sys.stderr)
            failed = True
        else:
            _write(client, messages)
            print(f"{client.name}: {len(messages)} messages")
    return int(failed)


def _write(client: Client, messages: list[ClientMessage]) -> None:
    head = f"# {client.title} {client.version()}: kind, transfer frame up to the message, message\n"
    text = head + "".join(message.line() for message in messages)
    (CLIENT_DIRECTORY / f"{client.name}.hex").write_text(text, encoding="ascii")


def _record(client: Client) -> list[ClientMessage]:
    """Return the messages that a client sends. Raises RecordFailed."""
    if missing := client.missing():
        raise RecordFailed(f"not on the path: {', '.join(missing)}")
    client.build()
    with tempfile.TemporaryDirectory(prefix="ambermq-record-") as place:
        broker = ChildBroker(Path(place) / "data")
        broker.start()
        relay = Relay(urlsplit(broker.url).port or 0)
        try:
            _drive(client, relay.url, Path(place) / "driver.stderr")
        finally:
            relay.close()
            broker.kill()
    messages = [message for sent in relay.sent for message in _messages(bytes(sent))]
    return sorted(messages, key=lambda message: message.kind)


def _drive(client: Client, url: str, stderr: Path) -> None:
    driver = Driver([*client.command, url, _BEHAVIOUR], client.place, stderr)
    cells = [cell for line in driver.lines() if (cell := read_cell(client.name, line)) is not None]
    driver.end()
    if [cell.verdict for cell in cells] != [Verdict.PASSED]:
        raise RecordFailed(f"its driver said {cells}: {driver.last_words()}")


def _messages(sent: bytes) -> Iterator[ClientMessage]:
    """Yield the messages of a connection."""
    addresses: dict[tuple[int, int], str] = {}
    for frame in _frames(sent):
        channel = int.from_bytes(frame[6:8])
        performative, payload_start = decode_frame_body(frame, 4 * frame[4], len(frame))
        if isinstance(performative, Attach):
            addresses[channel, performative.handle] = _address(performative)
        elif isinstance(performative, Transfer):
            kind = addresses[channel, performative.handle]
            if _KIND.fullmatch(kind):
                assert not performative.more
                yield ClientMessage(kind, frame[:payload_start], frame[payload_start:])


def _address(attach: Attach) -> str:
    """Return the address of the target, without the scheme and host that clients of Azure put before it."""
    target = attach.target
    assert not isinstance(target, Described)
    return str(getattr(target, "address", "")).rpartition("/")[2]


def _frames(sent: bytes) -> Iterator[bytes]:
    """Yield the AMQP frames of a connection that are not empty; protocol headers and SASL frames are left out."""
    position = 0
    while position + 8 <= len(sent):
        if sent[position : position + 4] == b"AMQP":
            position += 8
            continue
        size = int.from_bytes(sent[position : position + 4])
        if size > 8 and not sent[position + 5]:
            yield sent[position : position + size]
        position += size


if __name__ == "__main__":
    sys.exit(main())
