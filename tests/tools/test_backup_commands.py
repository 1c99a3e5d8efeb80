"""`ambermq snapshot export` and `restore`: what they print, and how they refuse."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.tools.backups import folded, lived_with_snapshot
from tools.backup_commands import export, restore
from tools.errors import TranslatingGroup
from tools.exit_codes import ExitCode


def run(*arguments: str | Path) -> Result:
    """Run one of the two commands."""
    group = TranslatingGroup("snapshot", commands=[export, restore])
    return CliRunner().invoke(group, [str(argument) for argument in arguments])


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A log at rest with the snapshot `one`."""
    lived_with_snapshot(tmp_path / "source", 21)
    return tmp_path / "source"


def test_a_backup_is_exported_and_restored(source: Path, tmp_path: Path) -> None:
    """One line for people, an object for programs: both tell what is in it and where it is."""
    path, target = tmp_path / "backup", tmp_path / "target"
    exported = run("export", "one", path, "--data", source, "--output", "json")
    assert exported.exit_code == ExitCode.OK
    values = json.loads(exported.stdout)
    assert values["path"] == str(path)
    assert values["stored_bytes"] < path.stat().st_size
    restored = run("restore", path, "--data", target)
    assert restored.exit_code == ExitCode.OK
    assert restored.stdout.startswith(f"restored one to {target}: {values['queues']} queues, {values['messages']} mess")
    again = json.loads(run("restore", path, "--data", tmp_path / "other", "--output", "json").stdout)
    assert again["from_log_id"] == values["log_id"] != again["log_id"]
    state, _ = folded(str(target))
    assert len(state.queues) == values["queues"]


@pytest.mark.parametrize("target", ["directory/", "empty"])
def test_a_backup_is_a_directory_where_the_path_says_so(target: str, source: Path, tmp_path: Path) -> None:
    """If it ends in a slash, or names an empty directory."""
    (tmp_path / "empty").mkdir()
    assert run("export", "one", f"{tmp_path}/{target}", "--data", source).exit_code == ExitCode.OK
    assert (tmp_path / target / "TABLE").exists()
    assert run("restore", f"{tmp_path}/{target}", "--data", tmp_path / "restored").exit_code == ExitCode.OK


def test_refusals_are_one_message_and_a_code(source: Path, tmp_path: Path) -> None:
    """What, where, expected, found, what to do; nothing is made."""
    path = tmp_path / "backup"
    assert run("export", "one", path, "--data", source).exit_code == ExitCode.OK
    damaged = bytearray(path.read_bytes())
    damaged[100] ^= 1
    (tmp_path / "damaged").write_bytes(damaged)
    (tmp_path / "foreign").write_bytes(b"PK" * 100)
    for arguments, code, words in (
        (("export", "two", path, "--data", source), ExitCode.NOT_FOUND, "no snapshot 'two': found one"),
        (("export", "one", path, "--data", source), ExitCode.FAILED, "there is a file of that name already"),
        (("export", "one", path, "--data", tmp_path), ExitCode.NOT_FOUND, "no log here"),
        (("restore", path, "--data", source), ExitCode.FAILED, "holds a log already"),
        (("restore", tmp_path / "damaged", "--data", tmp_path / "x"), ExitCode.DAMAGED, "use another copy"),
        (("restore", tmp_path / "foreign", "--data", tmp_path / "x"), ExitCode.FAILED, "is no backup"),
        (("restore", tmp_path / "nothing", "--data", tmp_path / "x"), ExitCode.NOT_FOUND, "does not exist"),
        (("restore", tmp_path, "--data", tmp_path / "x"), ExitCode.FAILED, "expected a file TABLE"),
        (("restore", path, "--data", tmp_path / "x", "--as-vhost", "v"), ExitCode.NOT_FOUND, "no such directory"),
    ):
        result = run(*arguments)
        assert (result.exit_code, result.stderr.count("\n")) == (code, 1), result.stderr
        assert words in result.stderr
    assert not (tmp_path / "x").exists()
