"""The modes of a data directory: other users of the machine read no body."""

import os
import stat
from pathlib import Path

import pytest

from ambermq.tools.broker.child_broker import ChildBroker
from ambermq.tools.broker.file_modes import check_owner, restrict_modes
from ambermq.tools.terminal.errors import ToolError
from tests.tools.conftest import Run


def modes(directory: Path) -> dict[str, str]:
    """Return the mode of each name below a directory that other users may use."""
    found = [directory, *directory.rglob("*")]
    return {str(path): oct(path.lstat().st_mode & 0o777) for path in found if path.lstat().st_mode & 0o077}


def test_no_file_of_a_broker_is_readable_by_others(run: Run, tmp_path: Path) -> None:
    """A new directory, its segments, index, snapshots, other virtual hosts and lock, whatever the umask is."""
    broker = ChildBroker(tmp_path / "data")
    broker.start()
    try:
        data = ("--data", broker.directory)
        assert run("send", "q", "body", *data).exit_code == 0
        assert run("vhost", "create", "other", *data).exit_code == 0
        assert run("snapshot", "create", *data).exit_code == 0
        assert modes(broker.directory) == {}
        assert stat.S_IMODE(broker.directory.stat().st_mode) == 0o700
    finally:
        broker.stop()
    assert modes(broker.directory) == {}


def test_a_directory_of_an_older_version_is_restricted_at_its_first_start(tmp_path: Path) -> None:
    """Files that were 0644 become 0600, directories 0700, and the log says how many."""
    broker = ChildBroker(tmp_path / "data")
    broker.start()
    broker.stop()
    for path in (broker.directory, *broker.directory.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    broker.start()
    try:
        assert modes(broker.directory) == {}
        assert "file modes restricted" in broker.stderr_path.read_text()
    finally:
        broker.stop()


def test_a_link_out_of_the_directory_is_not_followed(tmp_path: Path) -> None:
    """Its target keeps its mode."""
    (tmp_path / "data").mkdir()
    (tmp_path / "outside").write_text("x")
    (tmp_path / "outside").chmod(0o644)
    (tmp_path / "data" / "link").symlink_to(tmp_path / "outside")
    restrict_modes(str(tmp_path / "data"))
    assert stat.S_IMODE((tmp_path / "outside").stat().st_mode) == 0o644


def test_a_directory_of_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The message names both users and what to do."""
    monkeypatch.setattr(os, "geteuid", lambda: tmp_path.stat().st_uid + 4711)
    with pytest.raises(ToolError, match=r"belongs to another user: expected uid .*; run the broker as .*chown -R"):
        check_owner(str(tmp_path))
    check_owner(str(tmp_path / "missing"))
