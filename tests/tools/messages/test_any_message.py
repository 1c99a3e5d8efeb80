"""Messages that other clients send: our commands show every one, and send it again as it was."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from uuid import UUID

import pytest

from ambermq.protocol.amqp10.message.message import AmqpSequence, AmqpValue, Data, Message, decode_message
from ambermq.protocol.amqp10.performatives.classes import Header, Properties
from ambermq.protocol.amqp10.types.values import Array, Char, Described, Map, Symbol, Timestamp, UByte, ULong
from ambermq.tools.broker.child_broker import ChildBroker
from ambermq.tools.client.broker_url import BrokerUrl
from ambermq.tools.client.link_client import LinkClient
from ambermq.tools.messages.message_text import presented
from ambermq.tools.messages.publisher import Publisher
from ambermq.tools.messages.subscriber import Subscriber
from ambermq.tools.terminal.exit_codes import ExitCode
from tests.tools.conftest import Run, write_all
from tests.tools.messages.test_message_text import POISON

ACCEPTED = {name: payload for name, payload in POISON.items() if name not in {"no bytes", "nonsense"}}
"""Poison that the broker stores: its structure is good."""

RICH = [
    Message(
        header=Header(durable=True, priority=7, ttl=60_000, first_acquirer=True),
        message_annotations={"x-a": Timestamp(5), "x-b": Array("symbol", (Symbol("s"),))},
        properties=Properties(
            message_id=UUID(int=7),
            user_id=b"\xff",
            to="there",
            subject="s",
            reply_to="back",
            correlation_id=b"\x00\x01",
            content_type="text/plain",
            content_encoding="gzip",
            absolute_expiry_time=2**41,
            creation_time=2**40,
            group_id="g",
            group_sequence=3,
            reply_to_group_id="r",
        ),
        application_properties={"b": b"\xff", "c": Char("x"), "u": UByte(1), "n": None, "d": 1.0},
        body=(AmqpValue(Map(((1, Described(ULong(1), [UUID(int=1)])), (True, float("inf"))))),),
        footer={"f": ULong(2)},
    ),
    Message(header=Header(durable=False), properties=Properties(message_id=ULong(9)), body=(Data(b"a"), Data(b"\xff"))),
    Message(header=Header(durable=True), properties=Properties(), body=(AmqpSequence([1]), AmqpSequence([]))),
    Message(header=Header(durable=True), properties=Properties(), body=()),
    Message(header=Header(durable=True), properties=Properties(), body=(Data(b"x" * 3_000_000),)),
]


def publish(broker: ChildBroker, address: str, payloads: list[bytes]) -> None:
    """Send encoded messages; each is accepted."""
    with LinkClient.connect(BrokerUrl.parse(broker.url)) as client:
        publisher = Publisher(client, client.attach_sender(address))
        for number, payload in enumerate(payloads):
            publisher.offer(payload, number)
        publisher.finish()
        assert publisher.outcomes == {"accepted": len(payloads)}


def taken(broker: ChildBroker, address: str, count: int) -> list[bytes]:
    """Return the bytes of messages, which are accepted."""
    with LinkClient.connect(BrokerUrl.parse(broker.url)) as client:
        subscriber = Subscriber(client, client.attach_receiver(address))
        payloads = [bytes(payload) for payload in subscriber.payloads(count=count, idle_seconds=5)]
        subscriber.finish()
        return payloads


@pytest.mark.parametrize("as_json", [False, True])
def test_no_message_stops_receive_or_browse(run: Run, on_broker: Run, broker: ChildBroker, as_json: bool) -> None:
    """A poison message is shown, in hex if nothing else, with exit code 0, and the message behind it comes too."""
    address = f"poison-{as_json}"
    publish(broker, address, [*ACCEPTED.values(), Message().encode()])
    write_all(broker)
    for options in ((), ("--output", "json"), ("--ndjson",)):
        shown = run("queue", "browse", address, "--data", broker.directory, *options)
        assert (shown.exit_code, shown.stderr) == (ExitCode.OK, "")
    received = on_broker("receive", address, "--count", len(ACCEPTED) + 1, *(["--ndjson"] if as_json else []))
    assert (received.exit_code, received.stderr) == (ExitCode.OK, "")
    lines = received.stdout.splitlines()
    assert len(lines) == len(ACCEPTED) + 1
    if as_json:
        shown_hex = [bytes.fromhex(line["hex"]) for line in map(json.loads, lines) if "hex" in line]
        assert set(shown_hex) <= set(ACCEPTED.values())
        assert len(shown_hex) == len(ACCEPTED) - 3
        assert json.loads(lines[-1]) == {"durable": False, "text": ""}


def test_a_story_of_any_message(run: Run, broker: ChildBroker) -> None:
    """The commands of history show a message whose bytes cannot be decoded."""
    publish(broker, "story", [ACCEPTED["text that is no UTF-8"]])
    write_all(broker)
    data = ("--data", broker.directory)
    (row,) = json.loads(run("queue", "browse", "story", "--output", "json", *data).stdout)
    for command in (("history", "message", f"offset:{row['offset']}"), ("history", "tail", "--limit", 5)):
        shown = run(*command, *data)
        assert (shown.exit_code, shown.stderr) == (ExitCode.OK, "")


@pytest.mark.parametrize("source", ["receive", "browse", "past"])
def test_ndjson_is_faithful(run: Run, on_broker: Run, broker: ChildBroker, tmp_path: Path, source: str) -> None:
    """Every section, field and type survives `receive --ndjson | send --ndjson`, and from `queue browse --at`."""
    address, path = f"faithful-{source}", tmp_path / "lines"
    payloads = [message.encode() for message in RICH] + list(ACCEPTED.values())
    publish(broker, address, payloads)
    write_all(broker)
    data = ("--data", broker.directory)
    if source == "receive":
        printed = on_broker("receive", address, "--count", len(payloads), "--ndjson")
    elif source == "browse":
        printed = run("queue", "browse", address, "--ndjson", "--limit", 100, *data)
    else:
        last = json.loads(run("queue", "browse", address, "--limit", 100, "--output", "json", *data).stdout)[-1]
        on_broker("queue", "purge", address)
        write_all(broker)
        printed = run("queue", "browse", address, "--at", last["offset"], "--ndjson", "--limit", 100, *data)
    assert (printed.exit_code, printed.stderr) == (ExitCode.OK, "")
    path.write_text(printed.stdout)
    sent = on_broker("send", f"{address}-2", "--ndjson", "--file", path)
    assert (sent.exit_code, sent.stderr) == (ExitCode.OK, f"created queue '{address}-2'\n")
    again = taken(broker, f"{address}-2", len(payloads))
    for before, after in zip(RICH, again, strict=False):
        found, wanted = decode_message(after), decode_message(before.encode())
        if wanted.header is not None and wanted.header.ttl:
            # A delivery says what is left of it.
            assert found.header is not None
            assert 0 < (found.header.ttl or 0) <= wanted.header.ttl
            wanted.header = replace(wanted.header, ttl=found.header.ttl)
        assert found == wanted
    for after, before in zip(again, payloads, strict=True):
        if "hex" in presented(before):
            assert after == before


def test_keep_header(on_broker: Run, broker: ChildBroker, tmp_path: Path) -> None:
    """The delivery-count is of an earlier delivery: it is sent with --keep-header alone."""
    path = tmp_path / "lines"
    path.write_text('{"delivery_count": 3, "text": "x"}\n')
    for options, expected in (((), None), (("--keep-header",), 3)):
        assert on_broker("send", "kept", "--ndjson", "--file", path, *options).exit_code == ExitCode.OK
        (payload,) = taken(broker, "kept", 1)
        header = decode_message(payload).header
        assert header is not None
        assert header.delivery_count == expected


def test_a_client_takes_a_message_as_large_as_the_broker_does(run: Run, tmp_path: Path) -> None:
    """The broker's `message_bytes_max` may be above its default; no limit of the client is below it."""
    config = tmp_path / "broker.toml"
    config.write_text("[connection]\nmessage_bytes_max = 100000000\npartial_bytes_max = 200000000\n")
    broker = ChildBroker(tmp_path / "data", arguments=["--config", str(config)])
    broker.start()
    try:
        assert run("send", "large", "--size", 70_000_000, "--url", broker.url).exit_code == ExitCode.OK
        received = run("receive", "large", "--url", broker.url, "--timeout", 20)
        assert (received.exit_code, len(received.stdout)) == (ExitCode.OK, 70_000_001)
    finally:
        broker.kill()


def test_an_encoding_that_lacks_a_character(on_broker: Run, broker: ChildBroker) -> None:
    """On a terminal of another encoding a character is escaped as in JSON, and the lines of NDJSON stay valid."""
    command = [sys.executable, "-m", "ambermq", "receive", "ascii", "--url", broker.url]
    environment = os.environ | {"PYTHONIOENCODING": "ascii"}
    for options, expected in (((), b"\\u00e9\\ud83d\\ude00\n"), (("--ndjson",), None)):
        on_broker("send", "ascii", "\u00e9\U0001f600")
        shown = subprocess.run([*command, *options], env=environment, capture_output=True, check=True)
        assert shown.stdout == expected or json.loads(shown.stdout)["text"] == "\u00e9\U0001f600"
