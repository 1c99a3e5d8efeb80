"""`ambermq send` and `ambermq receive` on a running broker."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ambermq.tools.broker.child_broker import ChildBroker
from ambermq.tools.terminal.exit_codes import ExitCode
from tests.tools.conftest import Run


def received(on_broker: Run, address: str) -> list[dict[str, object]]:
    result = on_broker("receive", address, "--all", "--timeout", "0.2", "--ndjson")
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_a_message_sent_is_received(on_broker: Run) -> None:
    """The body comes out as it went in; both end well."""
    sent = on_broker("send", "plain", "hello world")
    assert (sent.exit_code, sent.stderr) == (ExitCode.OK, "created queue 'plain'\n")
    assert sent.stdout.startswith("accepted 1 of 1 in ")
    taken = on_broker("receive", "plain")
    assert (taken.exit_code, taken.stdout) == (ExitCode.OK, "hello world\n")
    assert on_broker("receive", "plain", "--timeout", "0.1").exit_code == ExitCode.TIMEOUT


def test_a_directory_finds_its_running_broker(run: Run, broker: ChildBroker) -> None:
    """--data is as good as --url."""
    assert run("send", "by-data", "x", "--data", broker.directory).exit_code == ExitCode.OK
    assert run("receive", "by-data", "--data", broker.directory).stdout == "x\n"


def test_properties_ids_and_durability_travel(on_broker: Run) -> None:
    """--property, --id and --no-durable are in the message; copies have numbered ids."""
    on_broker("send", "fields", "x", "--property", "a=1", "--property", "b=x=y", "--id", "m", "--no-durable")
    on_broker("send", "fields", "y", "--count", 2, "--id", "n")
    assert received(on_broker, "fields") == [
        {"id": "m", "durable": False, "properties": {"a": "1", "b": "x=y"}, "text": "x"},
        {"id": "n-1", "durable": True, "text": "y"},
        {"id": "n-2", "durable": True, "text": "y"},
    ]


def test_bodies_come_by_size_from_a_file_and_from_standard_input(on_broker: Run, tmp_path: Path) -> None:
    """--size, --file PATH and --file - stand for BODY; bytes that are no text travel as they are."""
    path = tmp_path / "body"
    path.write_bytes(b"\xff\x00")
    assert on_broker("send", "bodies", "--size", 5).exit_code == ExitCode.OK
    assert on_broker("send", "bodies", "--file", path).exit_code == ExitCode.OK
    assert on_broker("send", "bodies", "--file", "-", stdin=b"from a pipe\n").exit_code == ExitCode.OK
    assert received(on_broker, "bodies") == [
        {"durable": True, "text": "xxxxx"},
        {"durable": True, "base64": "/wA="},
        {"durable": True, "text": "from a pipe\n"},
    ]


def test_a_body_that_is_no_text_goes_as_it_was_typed(on_broker: Run) -> None:
    """Python carries such bytes of the command line as surrogates; a property, which is text, cannot have them."""
    assert on_broker("send", "typed", "bo\udcffdy").exit_code == ExitCode.OK
    assert received(on_broker, "typed") == [{"durable": True, "base64": "Ym//ZHk="}]
    refused = on_broker("send", "typed", "x", "--property", "a=\udcff")
    assert (refused.exit_code, "the message cannot be encoded in AMQP" in refused.stderr) == (ExitCode.USAGE, True)
    assert on_broker("send", "ty\udcff", "x").exit_code == ExitCode.USAGE


@pytest.mark.parametrize("line", ["no json", '{"priority": 256}', '{"properties": {"a": 18446744073709551616}}'])
def test_a_line_that_is_no_message_tells_what_was_accepted_before(on_broker: Run, tmp_path: Path, line: str) -> None:
    """The error has the number of accepted messages; the exit code is that of a wrong command line."""
    address = f"broken-{len(line)}"
    path = tmp_path / "lines"
    path.write_text(f'{{"text": "a"}}\n{{"text": "b"}}\n{line}\n{{"text": "c"}}\n')
    sent = on_broker("send", address, "--ndjson", "--file", path)
    assert sent.exit_code == ExitCode.USAGE
    assert re.search("(line|message) 3: the ", sent.stderr)
    assert sent.stderr.endswith("; before that 2 of 2 sent messages were accepted\n")
    assert [message["text"] for message in received(on_broker, address)] == ["a", "b"]


def test_an_interrupted_send_tells_what_was_accepted(on_broker: Run, broker: ChildBroker) -> None:
    """The accepted messages are on the queue after an interrupt of the command."""
    on_broker("queue", "declare", "cut")
    command = [
        sys.executable,
        "-m",
        "ambermq",
        "send",
        "cut",
        "x",
        "--count",
        "1000",
        "--rate",
        "20",
        "--url",
        broker.url,
    ]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as sending:
        assert on_broker("receive", "cut", "--timeout", "60").exit_code == ExitCode.OK
        sending.send_signal(signal.SIGINT)
        _, said = sending.communicate(timeout=30)
    assert sending.returncode == ExitCode.INTERRUPTED
    assert re.fullmatch(r"error: cut: interrupted; before that \d+ of (\d+) sent messages were accepted\n", said)


@pytest.mark.parametrize(
    "arguments",
    [
        ("send", "q", "x", "--rate", "nan"),
        ("receive", "q", "--timeout", "nan"),
        ("bench", "--rate", "inf"),
        ("bench", "--window", 1 << 32),
        ("send", "q", "--size", 1 << 32),
    ],
)
def test_numbers_that_are_none_or_that_amqp_cannot_say_are_refused(on_broker: Run, arguments: tuple[str | int]) -> None:
    """A rate or timeout of nan would be a wait without end."""
    assert on_broker(*arguments).exit_code == ExitCode.USAGE


def test_a_body_moves_no_cursor(on_broker: Run, broker: ChildBroker) -> None:
    """A pipe gets the body as it is; on a terminal what is not printable is escaped."""
    for _ in range(2):
        on_broker("send", "shown", "a\x1b[31m\nb")
    assert on_broker("receive", "shown").stdout == "a\x1b[31m\nb\n"
    ours, theirs = os.openpty()
    command = [sys.executable, "-m", "ambermq", "receive", "shown", "--url", broker.url]
    assert subprocess.run(command, stdout=theirs, check=False).returncode == ExitCode.OK
    assert os.read(ours, 100) == b"a\\x1b[31m\\nb\r\n"
    os.close(ours)
    os.close(theirs)


def test_lines_of_json_are_messages_both_ways(on_broker: Run, tmp_path: Path) -> None:
    """What `receive --ndjson` prints, `send --ndjson` takes; blank lines are none."""
    lines = [
        {"id": 7, "subject": "s", "durable": False, "priority": 9, "value": {"list": [1, 2.5, None]}},
        {"id": "b", "durable": True, "properties": {"flag": True}, "text": "eins"},
    ]
    path = tmp_path / "messages"
    path.write_text("\n\n".join(map(json.dumps, lines)))
    result = on_broker("send", "lines", "--ndjson", "--file", path, "--output", "json")
    assert {"address": "lines", "sent": 2, "accepted": 2}.items() <= json.loads(result.stdout).items()
    assert received(on_broker, "lines") == lines


def test_a_pipe_is_sent_line_by_line(on_broker: Run, broker: ChildBroker) -> None:
    """A line is sent when it came, not when the pipe ends."""
    on_broker("queue", "declare", "pipe")
    command = [sys.executable, "-m", "ambermq", "send", "pipe", "--ndjson", "--url", broker.url]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        process.stdin.write(b'{"text": "early"}\n')
        process.stdin.flush()
        assert on_broker("receive", "pipe", "--timeout", "60").stdout == "early\n"
        process.stdin.write(b'{"text": "late"}')
        output, _ = process.communicate(timeout=60)
    assert process.returncode == ExitCode.OK
    assert output.startswith(b"accepted 2 of 2 in ")


def test_what_is_released_stays_and_what_is_modified_counts(on_broker: Run) -> None:
    """Each message is seen once; then all are there again, in order."""
    for body in "abc":
        on_broker("send", "back", body)
    for outcome, count_before in (("released", None), ("modified", None), ("released", 1)):
        result = on_broker("receive", "back", "--all", "--timeout", "0.2", "--ndjson", "--outcome", outcome)
        messages = [json.loads(line) for line in result.stdout.splitlines()]
        assert [message["text"] for message in messages] == ["a", "b", "c"]
        assert [message.get("delivery_count") for message in messages] == [count_before] * 3
    assert on_broker("receive", "back", "--count", 3, "--outcome", "rejected").stdout == "a\nb\nc\n"
    assert received(on_broker, "back") == []


def test_no_more_is_taken_than_was_asked_for(on_broker: Run) -> None:
    """--count bounds the credit: the rest was never delivered."""
    on_broker("send", "bounded", "x", "--count", 5)
    assert on_broker("receive", "bounded", "--count", 2).stdout == "x\nx\n"
    shown = json.loads(on_broker("queue", "show", "bounded", "--output", "json").stdout)
    assert (shown["available"], shown["delivered"]) == (3, 2)


def test_fewer_than_asked_for_is_a_timeout(on_broker: Run) -> None:
    """What came is printed, exit code 3 tells of the rest."""
    on_broker("send", "few", "x")
    result = on_broker("receive", "few", "--count", 2, "--timeout", "0.2")
    assert (result.exit_code, result.stdout) == (ExitCode.TIMEOUT, "x\n")
    assert result.stderr == "error: few: not enough messages arrived: expected 2, each within 0.2 s, found 1\n"


def test_following_goes_on_until_interrupted(on_broker: Run, broker: ChildBroker) -> None:
    """--follow waits for the next message whatever the timeout; an interrupt ends it."""
    on_broker("queue", "declare", "followed")
    command = [
        sys.executable,
        "-m",
        "ambermq",
        "receive",
        "followed",
        "--follow",
        "--timeout",
        "0",
        "--url",
        broker.url,
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        for body in ("one", "two"):
            on_broker("send", "followed", body)
            assert process.stdout.readline() == f"{body}\n".encode()
        time.sleep(0.5)  # A message that is being printed when the interrupt comes returns to the queue.
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == ExitCode.INTERRUPTED
    assert received(on_broker, "followed") == []


def test_a_rate_paces(on_broker: Run) -> None:
    """N messages a second: the third waits for the second's turn to be over."""
    result = on_broker("send", "paced", "x", "--count", 3, "--rate", 10, "--output", "json")
    assert json.loads(result.stdout)["seconds"] >= 0.2


def test_a_message_that_is_refused_fails_the_command(on_broker: Run) -> None:
    """Exit code 1, the counts and the broker's reason."""
    on_broker("queue", "declare", "full", "--messages-max", 1)
    on_broker("send", "full", "x")
    result = on_broker("send", "full", "y")
    assert (result.exit_code, result.stdout) == (ExitCode.FAILED, "")
    assert "full: not every message was accepted: expected 1 accepted, found 1 rejected (" in result.stderr


def test_an_address_that_cannot_be_is_not_found(on_broker: Run) -> None:
    """Exit code 6, the address and the broker's reason."""
    for command in (("send", "/no/such", "x"), ("receive", "$nothing")):
        result = on_broker(*command)
        assert result.exit_code == ExitCode.NOT_FOUND
        assert repr(command[1]) in result.stderr
        assert "amqp:not-found" in result.stderr


def test_wrong_command_lines_are_told_before_anything_is_done(run: Run) -> None:
    """Exit code 2 without a broker in sight."""
    url = ("--url", "amqp://127.0.0.1:1")
    for arguments, message in (
        (("send", "a"), "one of BODY, --size, --file, --lines and --ndjson"),
        (("send", "a", "b", "--size", 1), "one of BODY, --size, --file, --lines and --ndjson"),
        (("send", "a", "b", "--ndjson"), "--ndjson excludes BODY, --size, --id and --count"),
        (("send", "a", "b", "--property", "x"), "--property 'x': expected NAME=VALUE"),
        (("send", "a", "--lines", "--ndjson"), "give --lines or --ndjson, not both"),
        (("receive", "a", "--all", "--count", 2), "--all excludes --count and --follow"),
        (("receive", "a", "--follow", "--outcome", "released"), "forever"),
    ):
        result = run(*arguments, *url)
        assert (result.exit_code, result.stdout) == (ExitCode.USAGE, "")
        assert message in result.stderr


def test_a_file_that_is_missing_or_wrong_is_named(on_broker: Run, tmp_path: Path) -> None:
    """Exit codes 6 and 2."""
    missing = on_broker("send", "files", "--file", tmp_path / "none")
    assert (missing.exit_code, missing.stderr) == (
        ExitCode.NOT_FOUND,
        f"error: {tmp_path}/none: no such file or directory; check the path\n",
    )
    path = tmp_path / "lines"
    path.write_text('{"text": "ok"}\nnonsense\n')
    on_broker("queue", "declare", "files")
    wrong = on_broker("send", "files", "--ndjson", "--file", path)
    assert wrong.exit_code == ExitCode.USAGE
    assert wrong.stderr.startswith(f"error: {path}, line 2: the line is not a message in JSON")


def test_a_topic_without_subscriptions_is_named_as_the_reason(on_broker: Run) -> None:
    """The outcome released has no reason of its own."""
    done = on_broker("send", "/topics/news.eu", "hello")
    assert done.exit_code == 1
    assert "found 1 released; no subscription takes what is sent to this topic: subscribe first" in done.stderr
    assert "`ambermq route /topics/news.eu` shows what was compared" in done.stderr


def test_the_fields_of_options_are_in_each_message(on_broker: Run, tmp_path: Path) -> None:
    """And they replace those of a line of NDJSON."""
    options = ("--priority", 7, "--ttl", "2min", "--group", "g", "--delay", "1ms")
    assert on_broker("send", "fields", "x", *options).exit_code == ExitCode.OK
    line = '{"text": "y", "priority": 1, "annotations": {"x-opt-delivery-time": 99999999999999, "x-opt-a": 1}}\n'
    (tmp_path / "lines").write_text(line)
    assert on_broker("send", "fields", "--ndjson", "--file", tmp_path / "lines", *options).exit_code == ExitCode.OK
    first, second = received(on_broker, "fields")
    for message in (first, second):
        assert 0 < message.pop("ttl_ms") <= 120_000
        assert (message["priority"], message["group_id"]) == (7, "g")
    assert first["annotations"] == {"x-opt-delivery-delay": 1}
    assert second["annotations"] == {"x-opt-a": 1, "x-opt-delivery-delay": 1}


def test_a_message_is_delivered_at_its_time(on_broker: Run) -> None:
    """It is scheduled until then; a time that has passed is now."""
    assert on_broker("send", "timed", "later", "--deliver-at", "2090-01-01T00:00:00Z").exit_code == ExitCode.OK
    assert on_broker("send", "timed", "now", "--deliver-at", "2001-01-01T00:00:00Z").exit_code == ExitCode.OK
    assert [message["text"] for message in received(on_broker, "timed")] == ["now"]
    (row,) = json.loads(on_broker("schedule", "list", "timed", "--output", "json").stdout)
    assert row["due"].startswith("2090-01-01T00:00:00")


@pytest.mark.parametrize(
    "options",
    [
        ("--priority", 256),
        ("--ttl", "0s"),
        ("--ttl", "50 days"),
        ("--ttl", "soon"),
        ("--delay", "1h", "--deliver-at", "now"),
        ("--deliver-at", 17),
        ("--delay", "-1s"),
    ],
)
def test_options_without_sense_are_usage_errors(on_broker: Run, options: tuple[str | int, ...]) -> None:
    """Nothing is sent."""
    assert on_broker("send", "nowhere", "x", *options).exit_code == ExitCode.USAGE
