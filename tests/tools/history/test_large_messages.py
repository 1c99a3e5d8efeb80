"""No command that reads the past holds a large message in memory: each shows its beginning and its size."""

import json
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from ambermq.protocol.amqp10.message.message import AmqpValue, Data, Message
from ambermq.protocol.amqp10.performatives.classes import Properties
from ambermq.tools.broker.child_broker import ChildBroker
from ambermq.tools.cli import main
from ambermq.tools.messages.message_preview import beginning_facts, message_facts
from ambermq.tools.terminal.exit_codes import ExitCode
from tests.tools.conftest import Run, write_all

MIB = 1 << 20
BODY_MIB = 64
MEMORY_BYTES_MAX = 24 * MIB
"""A few pieces of 1 MiB and the fixed memory of a command, far below the message."""


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The data of a stopped broker, with a message of 64 MiB on the queue `large`, and one that has been received."""
    place = tmp_path_factory.mktemp("large")
    arguments = ("--set", f"connection.message_bytes_max={2 * BODY_MIB * MIB}")
    broker = ChildBroker(place / "data", arguments=arguments)
    broker.start()
    source = place / "source"
    with source.open("wb") as file:
        for number in range(BODY_MIB):
            file.write(b"piece %d " % number * (MIB // 8))
    for words in (
        ("send", "large", "--file", str(source), "--id", "image-1"),
        ("send", "gone", "--file", str(source), "--id", "image-2"),
        ("receive", "gone", "--to-file", str(place / "copy")),
    ):
        result = CliRunner().invoke(main, [*words, "--url", broker.url])
        assert result.exit_code == ExitCode.OK, result.output
    write_all(broker)
    broker.kill()
    yield place / "data"
    source.unlink()


@pytest.mark.parametrize(
    "command",
    [
        "queue browse large",
        "queue browse large --ndjson",
        "queue browse large --at now --output json",
        "queue show large --at now",
        "log dump --output json",
        "log dump --type published",
        "log segments",
        "log verify",
        "history tail --output json",
        "history message image-1",
        "history message image-2 --output json",
        "history diff --since 0",
    ],
)
def test_a_command_reads_no_large_message_as_a_whole(run: Run, directory: Path, command: str) -> None:
    """Its memory does not grow with the message."""
    words = (*command.split(), "--data", directory)
    run(*words)
    tracemalloc.start()
    try:
        result = run(*words)
        memory = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (result.exit_code, bool(result.stdout)) == (ExitCode.OK, True), result.stderr
    assert memory < MEMORY_BYTES_MAX


def test_the_contents_of_an_export_have_the_beginning(run: Run, directory: Path, tmp_path: Path) -> None:
    """The first piece of a message above 16 MiB, in memory that does not grow with it."""
    parquet = pytest.importorskip("pyarrow.parquet")
    words = ("log", "export", "--contents", "--runner", "local", "--data", directory)
    run(*words, "--parquet", tmp_path / "warm")
    tracemalloc.start()
    try:
        result = run(*words, "--parquet", tmp_path / "past")
        memory = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert result.exit_code == ExitCode.OK, result.stderr
    assert memory < MEMORY_BYTES_MAX
    table = parquet.read_table(tmp_path / "past", columns=["type", "queue", "size", "body"])
    (row,) = [one for one in table.to_pylist() if (one["type"], one["queue"]) == ("published", "large")]
    assert row["size"] >= BODY_MIB * MIB
    assert MIB // 2 < len(row["body"]) <= MIB
    assert row["body"].startswith(b"piece 0 piece 0 ")


def test_a_large_message_in_json_has_its_beginning_and_its_size(
    run: Run, directory: Path, broker: ChildBroker, tmp_path: Path
) -> None:
    """`send` refuses it: it is not the whole message."""
    result = run("queue", "browse", "large", "--ndjson", "--data", directory)
    (shown,) = map(json.loads, result.stdout.splitlines())
    assert shown["id"] == "image-1"
    assert shown["bytes"] >= BODY_MIB * MIB
    assert shown["beginning"]["text"] == ("piece 0 " * 125)
    (tmp_path / "lines").write_text(result.stdout)
    sent = run("send", "copies", "--ndjson", "--file", tmp_path / "lines", "--url", broker.url)
    assert sent.exit_code == ExitCode.USAGE
    assert "beginning" in sent.stderr


@pytest.mark.parametrize("body", [Data("é".encode() * 5000), AmqpValue("é" * 5000), AmqpValue("é".encode() * 5000)])
def test_the_beginning_of_binary_and_text_is_shown(body: Data | AmqpValue) -> None:
    """Characters are whole, wherever the piece is cut; a body of another type shows nothing."""
    whole = Message(properties=Properties(message_id="é-1"), body=(body,)).encode()
    for size in range(1200, 1204):
        facts = beginning_facts(whole[:size], len(whole))
        assert facts["beginning"] == {"text": "é" * 500}
        assert (facts["id"], facts["bytes"]) == ("é-1", len(whole))
        assert message_facts(whole[:size], is_whole=False)["body"] == "é" * 99 + "…"
    short = Message(body=(AmqpValue("x" * 200),)).encode()
    assert beginning_facts(short[:100], 100)["beginning"] == {"text": "x" * (100 - 5)}
    other = Message(body=(AmqpValue({"a": 1}),)).encode()
    assert beginning_facts(other, len(other))["beginning"] == {"text": ""}
    assert beginning_facts(b"\x00\x53", 2)["beginning"] == {"text": "\x00S"}
