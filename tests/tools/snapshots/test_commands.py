"""The commands about snapshots: on a running broker, and on the directory that a stopped one left."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ambermq.log.manifest.manifest import snapshot_path, snapshots_path
from ambermq.tools.broker.child_broker import ChildBroker
from ambermq.tools.terminal.exit_codes import ExitCode
from tests.tools.conftest import Run


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ChildBroker]:
    """A running broker with the snapshots `first` and `second`; tests leave these two alone."""
    from click.testing import CliRunner

    from ambermq.tools.cli import main

    child = ChildBroker(tmp_path_factory.mktemp("snapshots") / "data")
    child.start()
    for line in (
        "queue declare gone",
        "send orders one --count 5",
        "snapshot create --name first",
        "receive orders --count 2",
        "send orders two --count 3",
        "queue delete gone",
        "queue declare new",
        "snapshot create --name second",
    ):
        result = CliRunner().invoke(main, [*line.split(), "--url", child.url])
        assert result.exit_code == 0, result.output
    yield child
    child.kill()


@pytest.fixture
def stopped(tmp_path: Path, run: Run) -> str:
    """The directory of a broker that took `one` and `two` and has stopped."""
    child = ChildBroker(tmp_path / "data")
    child.start()
    for name in ("one", "two"):
        assert run("send", "q", name, "--url", child.url).exit_code == 0
        assert run("snapshot", "create", "--name", name, "--url", child.url).exit_code == 0
    child.stop()
    return str(tmp_path / "data")


def listed(run: Run, directory: object) -> list[dict[str, Any]]:
    """What `snapshot list` tells programs."""
    result = run("snapshot", "list", "--data", str(directory), "--output", "json")
    rows: list[dict[str, Any]] = json.loads(result.stdout)
    return rows


def test_create_says_what_it_took(run: Run, filled: ChildBroker) -> None:
    """By name or without one; with --output json the same as `list` tells."""
    result = run("snapshot", "create", "--name", "told", "--url", filled.url, "--output", "json")
    assert json.loads(result.stdout) in listed(run, filled.directory)
    result = run("snapshot", "create", "--data", filled.directory)
    assert result.stdout.startswith("took snapshot-")
    assert run("snapshot", "create", "--no-wait", "--url", filled.url).stdout.startswith("taking snapshot-")


def test_a_name_that_is_had_is_refused(run: Run, filled: ChildBroker) -> None:
    """One message, exit code 1, and nothing changed."""
    result = run("snapshot", "create", "--name", "first", "--url", filled.url)
    assert result.exit_code == ExitCode.FAILED
    assert "409: there is a snapshot 'first' already" in result.stderr


def test_a_virtual_host_that_is_not_there_is_told(run: Run, filled: ChildBroker) -> None:
    """Exit code 6, and no snapshot of another one is taken."""
    result = run("snapshot", "create", "--vhost", "other", "--url", filled.url)
    assert (result.exit_code, result.stdout) == (ExitCode.NOT_FOUND, "")


def test_show_tells_what_it_holds(run: Run, filled: ChildBroker) -> None:
    """Counts of the state that is in the file."""
    result = run("snapshot", "show", "second", "--data", filled.directory, "--output", "json")
    values = json.loads(result.stdout)
    assert (values["queues"], values["messages"], values["muxers"]) == (2, 6, 2)
    assert not values["begins_history"]
    assert Path(values["file"]).stat().st_size == values["bytes"]


@pytest.mark.parametrize("command", ["show no", "verify no", "delete no --yes", "diff first no"])
def test_an_unknown_name_is_told(run: Run, filled: ChildBroker, command: str) -> None:
    """Exit code 6 and one message."""
    result = run("snapshot", *command.split(), "--data", filled.directory)
    assert (result.exit_code, result.stdout) == (ExitCode.NOT_FOUND, "")
    assert result.stderr.count("\n") == 1


def test_diff_tells_what_came_went_and_changed(run: Run, filled: ChildBroker) -> None:
    """Wiring by name, messages by count and ranges of offsets, counters by how far they have moved."""
    result = run("snapshot", "diff", "first", "second", "--data", filled.directory, "--output", "json")
    rows = json.loads(result.stdout)
    assert {(row["what"], row["change"], row["name"].split()[-1]) for row in rows if row["what"] != "route"} == {
        ("queue", "removed", "gone"),
        ("queue", "added", "new"),
        ("queue", "changed", "orders"),
    }
    (orders,) = [row for row in rows if row["name"] == "orders"]
    assert (orders["depth_before"], orders["depth_after"]) == (5, 6)
    assert (orders["went"]["count"], orders["came"]["count"]) == (2, 3)
    (went,) = orders["went"]["ranges"]
    assert went["last"] == went["first"] + 1
    assert orders["counters"]["accepted"] == 2
    assert orders["counters"]["published"] == 3
    table = run("snapshot", "diff", "first", "second", "--data", filled.directory).stdout
    assert f"2 in [{went['first']}, {went['last']}]" in table


def test_a_snapshot_does_not_differ_from_itself(run: Run, filled: ChildBroker) -> None:
    """Nothing is told."""
    result = run("snapshot", "diff", "first", "first", "--data", filled.directory, "--output", "json")
    assert json.loads(result.stdout) == []


def test_one_is_deleted_on_a_running_broker(run: Run, filled: ChildBroker) -> None:
    """It is on no list afterwards; the directory names the broker too."""
    assert run("snapshot", "create", "--name", "short-lived", "--url", filled.url).exit_code == 0
    assert run("snapshot", "delete", "short-lived", "--data", filled.directory).stdout == "deleted short-lived\n"
    assert "short-lived" not in {row["name"] for row in listed(run, filled.directory)}


def test_the_last_one_that_there_is_room_for_says_so(run: Run, tmp_path: Path) -> None:
    """The note is on standard error; the broker refuses one more, and logs that it takes no automatic snapshot."""
    config = tmp_path / "broker.toml"
    config.write_text("[engine]\nsnapshots_max = 1\nsnapshot_interval_s = 1\nsnapshot_pause_s = 0\n")
    broker = ChildBroker(tmp_path / "data", arguments=["--config", str(config)])
    broker.start()
    try:
        created = run("snapshot", "create", "--output", "json", "--url", broker.url)
        assert (created.exit_code, json.loads(created.stdout)["automatic"]) == (ExitCode.OK, False)
        assert created.stderr.startswith("note: the maximum number of snapshots")
        refused = run("snapshot", "create", "--url", broker.url)
        assert (refused.exit_code, "1 snapshots already" in refused.stderr) == (ExitCode.FAILED, True)
        run("send", "q", "news", "--url", broker.url)
        deadline = time.monotonic() + 60
        while (told := broker.stderr_path.read_text().count("no room for automatic snapshots")) < 1:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        assert told == 1
    finally:
        broker.kill()


def test_a_stopped_broker_is_looked_at_and_deleted_from(run: Run, stopped: str) -> None:
    """All but taking works on the directory; the file goes with its name, and the log is whole."""
    assert [row["name"] for row in listed(run, stopped)] == ["one", "two"]
    assert run("snapshot", "verify", "--data", stopped).exit_code == 0
    assert run("snapshot", "delete", "one", "--data", stopped).exit_code == 0
    assert [row["name"] for row in listed(run, stopped)] == ["two"]
    assert len(list(Path(snapshots_path(stopped)).iterdir())) == 1
    assert run("log", "verify", "--data", stopped).exit_code == 0
    assert run("snapshot", "create", "--data", stopped).exit_code == ExitCode.CANNOT_CONNECT


def test_damage_is_told_by_verify_and_passed_over_by_a_start(run: Run, stopped: str) -> None:
    """`snapshot verify` and `log verify` exit 5 and name the file; a start says so too, and uses the one before."""
    two = Path(snapshot_path(stopped, _file_id(run, stopped, "two")))
    content = bytearray(two.read_bytes())
    content[-20] ^= 1
    two.write_bytes(content)
    for command in (["snapshot", "verify"], ["log", "verify"]):
        result = run(*command, "--data", stopped)
        assert result.exit_code == ExitCode.DAMAGED
        assert str(two) in result.stderr
    table = run("snapshot", "verify", "--data", stopped, "--output", "json").stdout
    assert [row["whole"] for row in json.loads(table)] == [True, False]
    child = ChildBroker(Path(stopped))
    child.start()
    shown = run("queue", "show", "q", "--url", child.url, "--output", "json")
    child.kill()
    assert json.loads(shown.stdout)["available"] == 2


def test_a_snapshot_that_is_gone_is_damage(run: Run, stopped: str) -> None:
    """What the manifest names has to be there."""
    Path(snapshot_path(stopped, _file_id(run, stopped, "one"))).unlink()
    assert run("snapshot", "verify", "one", "--data", stopped).exit_code == ExitCode.DAMAGED
    assert run("log", "verify", "--data", stopped).exit_code == ExitCode.DAMAGED


@pytest.mark.parametrize("content", [b"", b"AMB", b"something else"])
@pytest.mark.parametrize("command", [("show", "two"), ("diff", "one", "two"), ("export", "two", "backup")])
def test_a_snapshot_that_was_overwritten_is_damage_too(
    run: Run, stopped: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes, command: tuple[str, ...]
) -> None:
    """The manifest names it, so it is not another program's; and no repair of the log would mend it."""
    monkeypatch.chdir(tmp_path)
    Path(snapshot_path(stopped, _file_id(run, stopped, "two"))).write_bytes(content)
    result = run("snapshot", *command, "--data", stopped)
    assert result.exit_code == ExitCode.DAMAGED
    assert "expected a snapshot with magic" in result.stderr
    assert result.stderr.endswith("; delete the snapshot and take another; a start uses the one before it\n")
    assert not Path("backup").exists()


def test_unknown_files_are_reported(run: Run, stopped: str) -> None:
    """A file that no manifest names is reported, and never deleted."""
    stray = Path(snapshots_path(stopped)) / "stray"
    stray.write_text("?")
    assert str(stray) in run("log", "verify", "--data", stopped).stdout
    assert stray.exists()


def _file_id(run: Run, directory: str, name: str) -> int:
    values = json.loads(run("snapshot", "show", name, "--data", directory, "--output", "json").stdout)
    return int(Path(values["file"]).stem, 16)
