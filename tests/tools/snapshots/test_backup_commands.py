"""`ambermq snapshot export` and `restore`: what they print, and how they refuse."""

import json
from pathlib import Path

import pytest

from ambermq.tools.broker.child_broker import ChildBroker
from ambermq.tools.terminal.exit_codes import ExitCode
from tests.tools.backups import folded, lived_with_snapshot
from tests.tools.conftest import Run


@pytest.fixture
def on_snapshot(run: Run) -> Run:
    """Run a command of the group `snapshot`."""
    return lambda *arguments: run("snapshot", *arguments)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A log at rest with the snapshot `one`."""
    lived_with_snapshot(tmp_path / "source", 21)
    return tmp_path / "source"


def test_a_backup_is_exported_and_restored(on_snapshot: Run, source: Path, tmp_path: Path) -> None:
    """One line for people, an object for programs: both tell what is in it and where it is."""
    path, target = tmp_path / "backup", tmp_path / "target"
    exported = on_snapshot("export", "one", path, "--data", source, "--output", "json")
    assert exported.exit_code == ExitCode.OK
    values = json.loads(exported.stdout)
    assert values["path"] == str(path)
    assert values["stored_bytes"] < path.stat().st_size
    restored = on_snapshot("restore", path, "--data", target)
    assert restored.exit_code == ExitCode.OK
    assert restored.stdout.startswith(f"restored one to {target}: {values['queues']} queues, {values['messages']} mess")
    again = json.loads(on_snapshot("restore", path, "--data", tmp_path / "other", "--output", "json").stdout)
    assert again["from_log_id"] == values["log_id"] != again["log_id"]
    state, _ = folded(str(target))
    assert len(state.queues) == values["queues"]


@pytest.mark.parametrize("target", ["directory/", "empty"])
def test_a_backup_is_a_directory_where_the_path_says_so(
    on_snapshot: Run, target: str, source: Path, tmp_path: Path
) -> None:
    """If it ends in a slash, or names an empty directory."""
    (tmp_path / "empty").mkdir()
    assert on_snapshot("export", "one", f"{tmp_path}/{target}", "--data", source).exit_code == ExitCode.OK
    assert (tmp_path / target / "TABLE").exists()
    assert on_snapshot("restore", f"{tmp_path}/{target}", "--data", tmp_path / "restored").exit_code == ExitCode.OK


def test_refusals_are_one_message_and_a_code(on_snapshot: Run, source: Path, tmp_path: Path) -> None:
    """What, where, expected, found, what to do; nothing is made."""
    path = tmp_path / "backup"
    assert on_snapshot("export", "one", path, "--data", source).exit_code == ExitCode.OK
    damaged = bytearray(path.read_bytes())
    damaged[100] ^= 1
    (tmp_path / "damaged").write_bytes(damaged)
    (tmp_path / "foreign").write_bytes(b"PK" * 100)
    for arguments, code, words in (
        (("export", "two", path, "--data", source), ExitCode.NOT_FOUND, "no snapshot 'two': found 1 snapshots"),
        (("export", "one", path, "--data", source), ExitCode.FAILED, "the file exists already"),
        (("export", "one", path, "--data", tmp_path), ExitCode.NOT_FOUND, "no log here"),
        (("restore", path, "--data", source), ExitCode.FAILED, "holds a log already"),
        (("restore", tmp_path / "damaged", "--data", tmp_path / "x"), ExitCode.DAMAGED, "use another copy"),
        (("restore", tmp_path / "foreign", "--data", tmp_path / "x"), ExitCode.FAILED, "is no backup"),
        (("restore", tmp_path / "nothing", "--data", tmp_path / "x"), ExitCode.NOT_FOUND, "no such file or directory"),
        (("restore", tmp_path, "--data", tmp_path / "x"), ExitCode.FAILED, "expected a file TABLE"),
        (("restore", path, "--data", tmp_path / "x", "--as-vhost", "v"), ExitCode.NOT_FOUND, "no such directory"),
    ):
        result = on_snapshot(*arguments)
        assert (result.exit_code, result.stderr.count("\n")) == (code, 1), result.stderr
        assert words in result.stderr
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize("path", ["", ".", "..", "/", "./"])
def test_a_backup_has_a_name_of_its_own(
    on_snapshot: Run, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    """It is renamed when it is whole: what cannot be renamed to is refused, and nothing is made."""
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    result = on_snapshot("export", "one", path, "--data", source)
    assert (result.exit_code, "the backup has no file name" in result.stderr) == (ExitCode.FAILED, True)
    assert list(here.iterdir()) == []


def test_a_backup_is_verified_by_its_path(on_snapshot: Run, source: Path, tmp_path: Path) -> None:
    """As snapshots are by their names: every byte, exit 5 where one is wrong."""
    path = tmp_path / "backup"
    assert on_snapshot("export", "one", path, "--data", source).exit_code == ExitCode.OK
    verified = on_snapshot("verify", path, "--output", "json")
    assert verified.exit_code == ExitCode.OK
    assert json.loads(verified.stdout)["name"] == "one"
    path.write_bytes(path.read_bytes()[:-1])
    assert on_snapshot("verify", path).exit_code == ExitCode.DAMAGED


def test_a_plain_name_is_that_of_a_snapshot_first(
    on_snapshot: Run, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A backup of a plain name is verified where no snapshot has the name, or no log is named."""
    monkeypatch.chdir(tmp_path)
    assert on_snapshot("export", "one", "kept", "--data", source).exit_code == ExitCode.OK
    (tmp_path / "one").mkdir()
    for arguments in (("kept",), ("kept", "--data", source)):
        assert json.loads(on_snapshot("verify", *arguments, "--output", "json").stdout)["path"] == "kept"
    assert on_snapshot("verify", "one", "--data", source).exit_code == ExitCode.OK
    assert on_snapshot("verify", "one").exit_code == ExitCode.FAILED


def test_a_running_broker_is_backed_up_and_its_copy_serves(run: Run, broker: ChildBroker, tmp_path: Path) -> None:
    """One command takes a snapshot and exports it; a broker on the restored directory has all of its messages."""
    run("send", "copied", "first", "--count", 20, "--url", broker.url)
    path, target = tmp_path / "copy.backup", tmp_path / "copy"
    exported = run("snapshot", "export", "now", path, "--take", "--data", broker.directory)
    assert exported.exit_code == ExitCode.OK, exported.stderr
    run("send", "copied", "later", "--url", broker.url)
    assert run("snapshot", "restore", path, "--data", target).exit_code == ExitCode.OK
    copy = ChildBroker(target)
    copy.start()
    try:
        received = run("receive", "copied", "--count", 21, "--timeout", 1, "--url", copy.url)
        assert received.stdout.splitlines() == ["first"] * 20
        assert run("send", "copied", "after", "--url", copy.url).exit_code == ExitCode.OK
        assert run("receive", "copied", "--url", copy.url).stdout.splitlines() == ["after"]
    finally:
        copy.kill()


def test_taking_first_needs_a_running_broker(on_snapshot: Run, source: Path, tmp_path: Path) -> None:
    """Only a broker takes a snapshot; the message says how to start one."""
    result = on_snapshot("export", "new", tmp_path / "backup", "--take", "--data", source)
    assert result.exit_code == ExitCode.CANNOT_CONNECT
    assert "no broker runs on this directory" in result.stderr
