"""`ambermq queue` in the past: listings as they were, and the messages of a queue, from the log alone."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ambermq.engine.events import Published
from ambermq.engine.history.past import open_past
from ambermq.tools.broker.child_broker import ChildBroker
from ambermq.tools.messages.message_preview import message_facts, one_line
from ambermq.tools.terminal.exit_codes import ExitCode
from tests.tools.conftest import Run, write_all

MESSAGE = {"id": "o-1", "subject": "tea", "properties": {"k": "v"}, "text": "two\nlines \x1b[2J"}


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ChildBroker]:
    """A running broker."""
    child = ChildBroker(tmp_path_factory.mktemp("past") / "data")
    child.start()
    yield child
    child.kill()


@pytest.fixture
def on_data(run: Run, broker: ChildBroker) -> Run:
    """Run a command on the broker's directory."""
    return lambda *arguments: run(*arguments, "--data", broker.directory)


def rows(run: Run, *arguments: str | int) -> Any:
    result = run(*arguments, "--output", "json")
    assert (result.exit_code, result.stderr) == (ExitCode.OK, "")
    found = json.loads(result.stdout)
    for row in found if isinstance(found, list) else [found]:
        # An age is of now: the past has none.
        row.pop("oldest_age_us", None)
    return found


def test_a_listing_now_from_the_log_is_the_living_one(on_data: Run, broker: ChildBroker) -> None:
    """--at now says what the broker says, in the same columns; so does show."""
    on_data("queue", "declare", "same", "--messages-max", 9)
    on_data("send", "same", "x", "--count", 3)
    on_data("receive", "same")
    write_all(broker)
    live = rows(on_data, "queue", "list")
    assert rows(on_data, "queue", "list", "--at", "now") == live
    assert rows(on_data, "queue", "show", "same", "--at", "now") == rows(on_data, "queue", "show", "same")
    table, past = (on_data("queue", "list", *at).stdout.splitlines()[0] for at in ((), ("--at", "now")))
    assert table.split() == past.split()


def test_a_listing_of_the_past_is_as_it_was(on_data: Run) -> None:
    """By offset and by time; a queue that was not there yet is not found, exit code 6."""
    on_data("send", "then", "x", "--count", 2)
    first = rows(on_data, "queue", "browse", "then")[0]
    on_data("queue", "purge", "then")
    assert rows(on_data, "queue", "show", "then", "--at", first["offset"])["available"] == 1
    assert rows(on_data, "queue", "show", "then", "--at", first["time"])["available"] > 0
    assert rows(on_data, "queue", "show", "then", "--at", "now")["available"] == 0
    result = on_data("queue", "show", "then", "--at", 0)
    assert (result.exit_code, result.stdout) == (ExitCode.NOT_FOUND, "")
    assert result.stderr.startswith("error: then: no such queue at 2")


def test_browsing_takes_nothing_and_shows_everything(on_data: Run, tmp_path: Path) -> None:
    """Sections and a preview; twice the same; the queue is as it was before."""
    (tmp_path / "messages").write_text(json.dumps(MESSAGE) + "\n")
    on_data("send", "shown", "--ndjson", "--file", tmp_path / "messages")
    on_data("send", "shown", "plain")
    first, second = rows(on_data, "queue", "browse", "shown")
    assert first["message_id"] == "o-1"
    assert first["header"] == {"durable": True}
    assert first["properties"] == {"subject": "tea"}
    assert first["application_properties"] == {"k": "v"}
    assert first["body"] == "two\\nlines \\x1b[2J"
    assert (second["message_id"], second["body"], second["state"]) == (None, "plain", "available")
    assert rows(on_data, "queue", "browse", "shown") == [first, second]
    assert rows(on_data, "queue", "browse", "shown", "--limit", 1) == [first]
    table = on_data("queue", "browse", "shown").stdout
    assert "\x1b" not in table
    assert len(table.splitlines()) == 3


def test_a_queue_is_browsed_as_it_was(on_data: Run, broker: ChildBroker) -> None:
    """What was received since is there again; what came back says so."""
    on_data("send", "gone", "x", "--count", 3)
    before = rows(on_data, "queue", "browse", "gone")
    on_data("receive", "gone", "--count", 2)
    write_all(broker)
    assert [row["offset"] for row in rows(on_data, "queue", "browse", "gone")] == [before[2]["offset"]]
    assert rows(on_data, "queue", "browse", "gone", "--at", before[2]["offset"]) == before
    on_data("receive", "gone", "--outcome", "modified")
    write_all(broker)
    assert rows(on_data, "queue", "browse", "gone")[0]["delivery_count"] == 1


def test_a_large_message_is_shown_by_its_first_piece(on_data: Run) -> None:
    """Properties and the beginning of the body; the rest is not read."""
    on_data("send", "large", "--size", 3_000_000)
    (row,) = rows(on_data, "queue", "browse", "large")
    assert row["bytes"] >= 3_000_000
    assert row["body"].startswith("xxx")
    assert row["body"].endswith("…")
    assert len(row["body"]) == 100


def test_a_stopped_broker_is_browsed_too(run: Run, tmp_path: Path) -> None:
    """By its directory; a message whose bytes are damaged is named, exit code 5, and the others are shown."""
    broker = ChildBroker(tmp_path / "data")
    broker.start()
    run("send", "q", "y" * 50, "--url", broker.url)
    run("send", "q", "x" * 50, "--url", broker.url)
    assert broker.stop() == ExitCode.OK
    on_stopped: Run = lambda *arguments: run(*arguments, "--data", broker.directory)  # noqa: E731
    assert [row["body"][0] for row in rows(on_stopped, "queue", "browse", "q")] == ["y", "x"]
    path = next(path for path in (broker.directory / "segments").glob("*.log") if b"x" * 50 in path.read_bytes())
    path.write_bytes(path.read_bytes().replace(b"x" * 50, b"z" * 50))
    result = on_stopped("queue", "browse", "q", "--output", "json")
    assert result.exit_code == ExitCode.DAMAGED
    assert [row["state"] for row in json.loads(result.stdout)] == ["available", "damaged"]
    assert json.loads(result.stderr)["error"]["message"].startswith("q: damaged messages: found ")


@pytest.fixture
def repaired(run: Run, tmp_path: Path) -> Iterator[tuple[ChildBroker, int]]:
    """A broker that serves again after a repair, and the offset after a snapshot that knows the message `lost` too."""
    child = ChildBroker(tmp_path / "data")
    child.start()
    run("send", "q", "lost", "--url", child.url)
    run("send", "q", "kept", "--url", child.url)
    end = json.loads(run("snapshot", "create", "--url", child.url, "--output", "json").stdout)["end"]
    with open_past(str(child.directory)) as past:
        lost = next(event.offset for event in past.events(0, past.end - 1) if type(event) is Published)
        batch = past.reader.find_batch(lost)
        assert batch is not None
        segment = past.reader.segments()[0].path
        position = batch.batch.position
    child.kill()
    content = bytearray(Path(segment).read_bytes())
    content[position + 70] ^= 1
    Path(segment).write_bytes(content)
    assert run("log", "repair", "--data", child.directory).exit_code == ExitCode.OK
    child.start()
    yield child, end
    child.kill()


def test_what_a_repair_has_lost_leaves_its_queue(run: Run, repaired: tuple[ChildBroker, int], tmp_path: Path) -> None:
    """From the next start on the queue holds the rest alone, and the log says why; backups and copies are whole."""
    broker, _ = repaired
    on_log: Run = lambda *arguments: run(*arguments, "--data", broker.directory)  # noqa: E731
    assert [row["body"] for row in rows(on_log, "queue", "browse", "q")] == ["kept"]
    told = on_log("history", "tail", "--type", "lost", "--type", "damaged").stdout
    assert "1 message of 'q' cannot be read and is set aside" in told
    assert rows(on_log, "queue", "show", "q")["damaged"] == 1
    for command in (("snapshot", "export", "now", tmp_path / "backup", "--take"), ("vhost", "copy", "default", "copy")):
        result = on_log(*command)
        assert result.exit_code == ExitCode.OK, result.stderr
    assert rows(on_log, "queue", "list", "--at", "now") == rows(on_log, "queue", "list")


def test_a_snapshot_of_before_knows_what_a_repair_has_lost(run: Run, repaired: tuple[ChildBroker, int]) -> None:
    """At its moment the queue lists it as damaged, and its history goes on, the age not known."""
    broker, end = repaired
    result = run("queue", "browse", "q", "--at", end - 1, "--data", broker.directory, "--output", "json")
    assert result.exit_code == ExitCode.DAMAGED
    shown = [(row["state"], row["time"] is None, row["body"]) for row in json.loads(result.stdout)]
    assert shown == [("damaged", True, ""), ("available", False, "kept")]
    told = run("history", "queue", "q", "--since", "1s ago", "--data", broker.directory)
    assert (told.exit_code, "oldest seconds" in told.stdout) == (ExitCode.OK, True), told.stderr


@pytest.mark.parametrize("command", [("list",), ("show", "q"), ("browse", "q")])
@pytest.mark.parametrize(
    ("when", "code", "said"),
    [
        ("2999-01-01", ExitCode.FAILED, "lies in the future"),
        ("9999999999", ExitCode.FAILED, "lies in the future: the log goes from offset 0 ("),
        ("1999-01-01", ExitCode.FAILED, "lies before the log's history: the log goes from offset 0 ("),
        ("sometime", ExitCode.USAGE, "invalid moment"),
    ],
)
def test_what_is_no_moment_of_the_log_is_refused(
    on_data: Run, command: tuple[str, ...], when: str, code: ExitCode, said: str
) -> None:
    """One line, its exit code, nothing else."""
    result = on_data("queue", *command, "--at", when)
    assert (result.exit_code, result.stdout) == (code, "")
    assert said in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_the_past_needs_the_directory(run: Run, broker: ChildBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    """A URL alone is refused, as an option and from the environment, and the message says what to give."""
    for arguments in (("queue", "browse", "q"), ("queue", "list", "--at", "now")):
        result = run(*arguments, "--url", broker.url)
        assert (result.exit_code, result.stdout) == (ExitCode.USAGE, "")
        assert "give --data, the broker's directory" in result.stderr
    monkeypatch.setenv("AMBERMQ_URL", broker.url)
    assert "give --data" in run("queue", "browse", "q").stderr
    monkeypatch.setenv("AMBERMQ_DATA", str(broker.directory))
    assert run("queue", "list", "--at", "now").exit_code == ExitCode.OK


def test_bytes_that_are_no_message_are_shown_as_such() -> None:
    """A listing never fails for one message."""
    assert message_facts(b"\xff\xfe")["body"] == "(no section begins at byte 0) 0xfffe"
    assert message_facts(b"\xff\xfe", is_whole=False)["message_id"] is None


def test_a_preview_is_one_bounded_line() -> None:
    """Control characters, other spaces and turned directions are escaped; what is long is cut."""
    assert one_line("a\tb\x1b\u202e\x9b\u2028") == "a\\tb\\x1b\\u202e\\x9b\\u2028"
    assert one_line("x" * 101) == "x" * 99 + "…"
    assert one_line("x" * 100) == "x" * 100
    assert one_line("\n" * 60, 10) == "\\n\\n\\n\\n\\…"
