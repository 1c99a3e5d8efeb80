"""`ambermq history` on a directory, beside a running broker and on a stopped one."""

import json
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from ambermq.engine.events import Detached
from ambermq.engine.history.past import open_past
from ambermq.tools.broker.child_broker import ChildBroker
from ambermq.tools.cli import main
from ambermq.tools.past.past_names import PastNames
from ambermq.tools.terminal.exit_codes import ExitCode
from tests.tools.conftest import Run, write_all


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ChildBroker]:
    """A running broker with some history: a queue that lives, one that is deleted, and a message with an id."""
    place = tmp_path_factory.mktemp("written")
    broker = ChildBroker(place / "data")
    broker.start()
    (place / "tea").write_text('{"id": "tea-1", "text": "green"}\n')
    for arguments in (
        ("send", "orders", "x", "--count", "3"),
        ("send", "orders", "--ndjson", "--file", str(place / "tea")),
        ("receive", "orders", "--count", "4"),
        ("send", "orders", "y"),
        ("send", "old", "z", "--count", "2"),
        ("queue", "delete", "old"),
    ):
        assert CliRunner().invoke(main, [*arguments, "--url", broker.url]).exit_code == ExitCode.OK
    yield broker
    broker.kill()


@pytest.fixture
def on_log(run: Run, written: ChildBroker) -> Run:
    """Run a command of `history` on the directory, with all that tests before have done."""
    write_all(written)
    return lambda *arguments: run("history", *arguments, "--data", written.directory)


def objects(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def dumped(run: Run, written: ChildBroker) -> list[dict[str, Any]]:
    return objects(run("log", "dump", "--data", written.directory, "--output", "json").stdout)


def test_the_tail_is_the_end_of_the_dump(run: Run, on_log: Run, written: ChildBroker) -> None:
    """The last N lines, the same in words and as JSON, whatever N is; 20 by default."""
    whole = dumped(run, written)
    for limit in (1, 2, 5, 10_000):
        assert objects(on_log("tail", "--limit", limit, "--output", "json").stdout) == whole[-limit:]
    assert len(on_log("tail").stdout.splitlines()) == 20


def test_names_are_looked_up_where_things_began(run: Run, written: ChildBroker) -> None:
    """Of what is attached or detached too, where that is all that was heard."""
    told = {event["type"]: event for event in dumped(run, written) if event.get("queue") == "old"}
    muxer, member = told["attached"]["muxer"], told["attached"]["member"]
    with open_past(str(written.directory)) as past:
        names = PastNames(past)
        names.add(Detached(past.end, 0, muxer, member, attachment=past.end - 1))
        assert (names.muxer(muxer), names.member(member)) == ("QUEUE", "queue 'old'")


def test_the_tail_shows_only_what_was_asked_for(run: Run, on_log: Run, written: ChildBroker) -> None:
    """By kind, queue and message; names are known that were told long before."""
    whole = dumped(run, written)
    settled = objects(on_log("tail", "--type", "settled", "--output", "json").stdout)
    assert settled == [event for event in whole if event["type"] == "settled"]
    old = on_log("tail", "--queue", "old", "--limit", 100).stdout
    assert "queue 'old' deleted" in old
    assert "'orders'" not in old
    (tea,) = [event["offset"] for event in objects(on_log("tail", "--message", "tea-1", "--output", "json").stdout)][:1]
    story = objects(on_log("tail", "--message", f"offset:{tea}", "--output", "json").stdout)
    assert [event["type"] for event in story] == ["published", "acquired", "settled"]


@pytest.mark.parametrize("message", ["unknown", "offset:0", "offset:99999999", "offset:x"])
def test_an_unknown_message_is_not_found(on_log: Run, message: str) -> None:
    """Exit code 6 and what was asked for."""
    result = on_log("tail", "--message", message)
    assert (result.exit_code, result.stdout) == (ExitCode.NOT_FOUND, "")
    assert result.stderr == f"error: {message}: no such message\n"


@pytest.mark.parametrize("options", [(), ("--type", "purged"), ("--limit", "3")])
def test_the_tail_of_an_unknown_queue_is_not_found(on_log: Run, options: tuple[str, ...]) -> None:
    """Exit code 6; of a queue that is or was there, nothing that fits is no mistake."""
    result = on_log("tail", "--queue", "unknown", *options)
    assert (result.exit_code, result.stdout) == (ExitCode.NOT_FOUND, "")
    assert result.stderr == "error: unknown: no such queue in this history\n"
    for known in ("orders", "old"):
        nothing = on_log("tail", "--queue", known, "--type", "damaged")
        assert (nothing.exit_code, nothing.stdout) == (ExitCode.OK, "")


def test_the_tail_follows_from_the_end(run: Run, written: ChildBroker) -> None:
    """--follow begins with what happens next, and goes on until it is interrupted, which is no failure."""
    run("send", "followed", "x", "--url", written.url)
    options = ("--follow", "--queue", "followed", "--type", "published", "--output", "json")
    command = [sys.executable, "-m", "ambermq", "history", "tail", "--data", str(written.directory), *options]
    before = len(dumped(run, written))
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            seen = [json.loads(next_line(process, run, written)) for _ in range(2)]
            process.send_signal(signal.SIGINT)
            assert process.wait(60) == ExitCode.OK
        finally:
            process.kill()
    assert [event["queues"] for event in seen] == [["followed"]] * 2
    assert dumped(run, written)[before]["offset"] <= seen[0]["offset"] < seen[1]["offset"]


def next_line(process: "subprocess.Popen[str]", run: Run, written: ChildBroker) -> str:
    """Send until a line is printed: the moment at which the process begins to read is unknown."""
    assert process.stdout is not None
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        run("send", "followed", "x", "--url", written.url)
        if select.select([process.stdout], [], [], 0.5)[0]:
            return process.stdout.readline()
    raise AssertionError("no line came")


def test_a_difference_tells_queues_and_links(run: Run, on_log: Run, written: ChildBroker) -> None:
    """Counts and depths since the beginning, of a deleted queue too; nothing from now to now."""
    found = json.loads(on_log("diff", "--since", 0, "--output", "json").stdout)
    rows = {row["name"]: row for row in found["queues"]}
    orders, old = rows["orders"], rows["old"]
    assert (orders["change"], orders["depth_then"], orders["depth_now"]) == ("declared", None, 1)
    assert (orders["published"], orders["accepted"]) == (5, 4)
    assert (old["change"], old["depth_now"], old["published"]) == ("declared and deleted", None, 2)
    assert found["events"]["queue-deleted"] == 1
    assert found["links"] == []
    table = on_log("diff", "--since", 0).stdout
    assert table.startswith("from  20")
    assert "declared and deleted" in table
    nothing = json.loads(on_log("diff", "--since", "now", "--output", "json").stdout)
    assert (nothing["queues"], nothing["wiring"], nothing["links"], nothing["events"]) == ([], [], [], {})


def test_a_difference_names_links_that_came(run: Run, on_log: Run, written: ChildBroker) -> None:
    """A consumer that is there at the end and was not at the beginning."""
    command = [sys.executable, "-m", "ambermq", "receive", "linked", "--follow", "--url", written.url]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        run("send", "linked", "x", "--url", written.url)
        assert process.stdout is not None
        assert select.select([process.stdout], [], [], 60)[0]
        write_all(written)
        (link,) = json.loads(on_log("diff", "--since", 0, "--output", "json").stdout)["links"]
        process.kill()
    assert (link["change"], link["link"], link["node"]) == ("came", "consumer", "linked")


def test_a_queue_is_told_over_time(on_log: Run) -> None:
    """Rows from its declaration to now; the counts add up; the chart has a character a row."""
    rows = json.loads(on_log("queue", "orders", "--output", "json").stdout)
    assert sum(row["published"] for row in rows) == 5
    assert sum(row["settled"] for row in rows) == 4
    assert (rows[-1]["depth"], rows[-1]["available"]) == (1, 1)
    assert rows[-1]["oldest_seconds"] > 0
    fine = json.loads(on_log("queue", "orders", "--since", 0, "--step", "50ms", "--output", "json").stdout)
    assert sum(row["published"] for row in fine) == 5
    table, _, chart = on_log("queue", "orders", "--since", 0).stdout.partition("\n\n")
    assert table.split()[:2] == ["time", "depth"]
    drawn = {line[:20].strip() for line in chart.splitlines()}
    assert drawn == {"depth", "published per second", "settled per second", "oldest seconds"}


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("queue", "missing"), ExitCode.NOT_FOUND, "missing: no such queue at the end of any step from "),
        (("queue", "orders", "--since", "now"), ExitCode.USAGE, "the time span does not fit the steps"),
        (("queue", "orders", "--step", "soon"), ExitCode.USAGE, "invalid duration"),
        (("queue", "orders", "--since", 0, "--step", "1ms"), ExitCode.USAGE, "1 to 1000 steps"),
        (("queue", "orders", "--until", "2999-01-01"), ExitCode.FAILED, "lies in the future"),
        (("diff", "--since", 5, "--until", 3), ExitCode.USAGE, "--until lies before --since"),
        (
            ("diff", "--since", "1999-01-01"),
            ExitCode.FAILED,
            "lies before the log's history: the log goes from",
        ),
        (("diff", "--since", 999_999_999), ExitCode.FAILED, "lies in the future: the log goes from offset 0"),
    ],
)
def test_what_cannot_be_told_is_refused(
    on_log: Run, arguments: tuple[str | int, ...], code: ExitCode, said: str
) -> None:
    """One line, its exit code, nothing else."""
    result = on_log(*arguments)
    assert (result.exit_code, result.stdout) == (code, "")
    assert said in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_damage_is_told_and_nothing_else(run: Run, tmp_path: Path) -> None:
    """A log whose head is damaged answers no question about what lies behind it: exit code 5, file and position."""
    broker = ChildBroker(tmp_path / "data")
    broker.start()
    run("send", "orders", "x", "--url", broker.url)
    assert broker.stop() == ExitCode.OK
    assert run("history", "tail", "--data", broker.directory).exit_code == ExitCode.OK
    path = min((broker.directory / "segments").glob("*.log"))
    content = bytearray(path.read_bytes())
    content[content.index(b"AMBB", content.index(b"AMBB") + 1) + 20] ^= 1
    path.write_bytes(content)
    for arguments in (("tail",), ("diff", "--since", "0"), ("queue", "orders")):
        result = run("history", *arguments, "--data", broker.directory)
        assert (result.exit_code, result.stdout) == (ExitCode.DAMAGED, "")
        assert f"{path} is damaged at position" in result.stderr
