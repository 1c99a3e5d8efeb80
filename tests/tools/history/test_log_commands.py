"""`ambermq log` on a directory, beside a running broker and on a stopped one."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ambermq.log.format import checksum_pair
from ambermq.tools.broker.child_broker import ChildBroker
from ambermq.tools.terminal.exit_codes import ExitCode
from tests.tools.conftest import Run, write_all


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ChildBroker]:
    """A running broker with some history: two queues, three messages, one of them taken."""
    broker = ChildBroker(tmp_path_factory.mktemp("written") / "data")
    broker.start()
    for arguments in (("send", "orders", "x", "--count", "2"), ("send", "other", "y"), ("receive", "orders")):
        command = [sys.executable, "-m", "ambermq", *arguments, "--url", broker.url]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    yield broker
    broker.kill()


@pytest.fixture
def on_log(run: Run, written: ChildBroker) -> Run:
    """Run a command of `log` on the directory, with all that tests before have done."""
    write_all(written)
    return lambda *arguments: run("log", *arguments, "--data", written.directory)


@pytest.fixture
def stopped(run: Run, tmp_path: Path) -> Path:
    """A directory whose broker has ended well."""
    broker = ChildBroker(tmp_path / "data")
    broker.start()
    run("send", "orders", "x" * 100, "--count", 5, "--url", broker.url)
    assert broker.stop() == ExitCode.OK
    return broker.directory


def objects(text: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in text.splitlines()]


def test_segments_are_listed_while_the_broker_runs(on_log: Run) -> None:
    """File, state, offsets, records and bytes; JSON has the path too."""
    table = on_log("segments").stdout.splitlines()
    assert table[0].split()[:2] == ["file", "state"]
    rows = json.loads(on_log("segments", "--output", "json").stdout)
    assert [row["state"] for row in rows if row["state"] != "spare"][-1] == "active"
    assert sum(row["records"] for row in rows) == rows[-1]["next_offset"]
    assert Path(rows[0]["path"]).name == rows[0]["file"]


def test_dump_tells_what_happened_in_order(on_log: Run) -> None:
    """Every event is a line, with the queue's name; as JSON the same events."""
    lines = on_log("dump").stdout.splitlines()
    events = objects(on_log("dump", "--output", "json").stdout)
    assert [line.split()[0] for line in lines] == [str(event["offset"]) for event in events]
    kinds = [event["type"] for event in events]
    assert kinds[:4] == ["started", "muxer-declared", "muxer-declared", "queue-declared"]
    assert kinds.index("published") < kinds.index("acquired") < kinds.index("settled")
    assert any("2 messages to 'orders'" in line or "1 message to 'orders'" in line for line in lines)


def test_dump_shows_only_what_was_asked_for(on_log: Run) -> None:
    """--type, --queue, --from, --to and --limit narrow it; names from before --from are still known."""
    whole = objects(on_log("dump", "--output", "json").stdout)
    settled = objects(on_log("dump", "--output", "json", "--type", "settled").stdout)
    assert settled == [event for event in whole if event["type"] == "settled"]
    assert [event["queue"] for event in settled] == ["orders"]
    first, last = whole[3]["offset"], whole[6]["offset"]
    assert objects(on_log("dump", "--output", "json", "--since", str(first), "--until", str(last)).stdout) == whole[3:7]
    assert objects(on_log("dump", "--output", "json", "--limit", "2").stdout) == whole[:2]
    other = on_log("dump", "--queue", "other").stdout
    assert "'other'" in other
    assert "'orders'" not in other


@pytest.mark.parametrize("options", [(), ("--follow",), ("--output", "json")])
def test_dump_refuses_bounds_in_the_wrong_order(on_log: Run, options: tuple[str, ...]) -> None:
    """An offset of --to below that of --from is a mistake: one line, and nothing on standard output."""
    done = on_log("dump", "--since", "10", "--until", "5", *options)
    assert (done.exit_code, done.stdout) == (ExitCode.USAGE, "")
    assert "10 to 5: --until lies before --since" in done.stderr
    assert done.stderr.count("\n") == 1
    assert on_log("dump", "--since", "5", "--until", "5").exit_code == ExitCode.OK


def test_dump_follows_what_is_written(run: Run, written: ChildBroker) -> None:
    """--follow prints later events as they come; --limit ends it."""
    options = ("--follow", "--queue", "followed", "--type", "published", "--limit", "1", "--output", "json")
    command = [sys.executable, "-m", "ambermq", "log", "dump", "--data", str(written.directory), *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert run("send", "followed", "x", "--url", written.url).exit_code == ExitCode.OK
        output, _ = process.communicate(timeout=60)
    assert process.returncode == ExitCode.OK
    assert objects(output)[0]["queues"] == ["followed"]


def test_a_whole_log_is_verified_while_the_broker_runs(on_log: Run) -> None:
    """Exit code 0 and what was checked, no progress without a terminal."""
    result = on_log("verify", "--output", "json")
    assert (result.exit_code, result.stderr) == (ExitCode.OK, "")
    report = json.loads(result.stdout)
    assert report["damage"] is None
    assert report["record_count"] > 10


def damage(directory: Path) -> Path:
    """Flip a bit in the head of a batch that is durable: the second one of the first segment."""
    path = min((directory / "segments").glob("*.log"))
    content = bytearray(path.read_bytes())
    second = content.index(b"AMBB", content.index(b"AMBB") + 1)
    content[second + 20] ^= 1
    path.write_bytes(content)
    return path


def test_damage_is_found_named_and_repaired(run: Run, stopped: Path) -> None:
    """verify exits 5 with file and position; repair says what it would do, does it, and then all is well."""
    path = damage(stopped)
    found = run("log", "verify", "--data", stopped)
    assert found.exit_code == ExitCode.DAMAGED
    assert f"error: {path} is damaged at position " in found.stderr
    before = path.read_bytes()

    planned = run("log", "repair", "--dry-run", "--data", stopped)
    assert planned.exit_code == ExitCode.OK
    assert str(path) in planned.stdout
    assert path.read_bytes() == before

    done = run("log", "repair", "--data", stopped, "--output", "json")
    assert done.exit_code == ExitCode.OK
    assert json.loads(done.stdout)["faults"] != []
    assert [aside.read_bytes() for aside in (stopped / "aside").iterdir()] == [before]
    assert run("log", "verify", "--data", stopped).exit_code == ExitCode.OK


def test_a_damaged_body_is_found_though_the_log_opens(run: Run, stopped: Path) -> None:
    """verify reads bodies too; repair leaves them to the broker, which parks the message."""
    path = min((stopped / "segments").glob("*.log"))
    content = bytearray(path.read_bytes())
    content[content.index(b"x" * 100) + 50] ^= 1
    path.write_bytes(content)
    result = run("log", "verify", "--data", stopped, "--output", "json")
    assert result.exit_code == ExitCode.DAMAGED
    assert json.loads(result.stdout)["damage"] in result.stderr
    assert run("log", "repair", "--data", stopped).stdout == "nothing to repair: the log opens\n"


def test_a_directory_in_the_place_of_an_index_is_one_line_with_advice(run: Run, stopped: Path) -> None:
    """verify exits 5. A repair has nothing to do, so the advice is another one than for a segment."""
    broker = ChildBroker(stopped)
    broker.start()
    assert broker.stop() == ExitCode.OK
    segment = min((stopped / "segments").glob("*.log"))
    index = segment.with_suffix(".index")
    index.unlink(missing_ok=True)
    index.mkdir()
    result = run("log", "verify", "--data", stopped)
    assert result.exit_code == ExitCode.DAMAGED
    (line,) = result.stderr.splitlines()
    assert line.startswith(
        f"error: {index} is damaged at position 0: expected an index, found a directory; move it away"
    )
    assert run("log", "repair", "--data", stopped).stdout == "nothing to repair: the log opens\n"
    index.rmdir()
    assert run("log", "verify", "--data", stopped).exit_code == ExitCode.OK


def test_a_fault_of_a_checksum_is_no_damage(run: Run, stopped: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the two implementations disagree, verify exits 1: a script that repairs after exit 5 would find nothing."""
    monkeypatch.setattr(checksum_pair, "_second", lambda: lambda _buffer, crc: crc ^ 1)
    result = run("log", "verify", "--data", stopped)
    assert result.exit_code == ExitCode.FAILED
    assert "one of these packages is at fault" in result.stderr


def test_nothing_is_repaired_where_nothing_is_damaged(run: Run, stopped: Path) -> None:
    """A whole log stays as it is."""
    files = {path: path.read_bytes() for path in stopped.rglob("*") if path.is_file()}
    assert run("log", "repair", "--data", stopped).stdout == "nothing to repair: the log opens\n"
    assert {path: path.read_bytes() for path in stopped.rglob("*") if path.is_file()} == files


def test_a_running_broker_keeps_repair_out(on_log: Run, written: ChildBroker) -> None:
    """Exit code 1, and the holder of the directory."""
    result = on_log("repair")
    assert result.exit_code == ExitCode.FAILED
    assert f"found pid {written.pid}" in result.stderr


@pytest.mark.parametrize("command", ["segments", "dump", "verify"])
def test_a_directory_without_a_log_is_not_found(run: Run, tmp_path: Path, command: str) -> None:
    """Exit code 6: the directory is named, and the file that is missing."""
    result = run("log", command, "--data", tmp_path)
    assert (result.exit_code, result.stdout) == (ExitCode.NOT_FOUND, "")
    assert result.stderr.startswith(f"error: {tmp_path}: no log here: expected a file MANIFEST, found none")
    assert run("log", command, "--data", tmp_path / "none").exit_code == ExitCode.NOT_FOUND


def test_a_log_needs_a_directory(run: Run) -> None:
    """There is no --url here."""
    result = run("log", "dump")
    assert result.exit_code == ExitCode.USAGE
    assert "give --data, or set AMBERMQ_DATA" in result.stderr
