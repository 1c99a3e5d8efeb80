"""A private file is replaced as a whole, or not at all."""

import os
from pathlib import Path

import pytest

from ambermq.log.storage.private_file import replace_private_file


def test_a_file_is_replaced(tmp_path: Path) -> None:
    """It is 0600, and what a kill has left of an earlier change is gone."""
    path = tmp_path / "users"
    for content in (b"first", b"second"):
        (tmp_path / "users.new").write_bytes(b"half a")
        replace_private_file(str(path), content)
        assert path.read_bytes() == content
    assert path.stat().st_mode & 0o777 == 0o600
    assert [one.name for one in tmp_path.iterdir()] == ["users"]


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_failure_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    """A disk that fails, or is full; nothing is left beside it."""

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    path = tmp_path / "users"
    replace_private_file(str(path), b"first")
    monkeypatch.setattr(os, call, fail)
    with pytest.raises(OSError, match="No space left"):
        replace_private_file(str(path), b"second")
    assert path.read_bytes() == b"first"
    assert [one.name for one in tmp_path.iterdir()] == ["users"]


def test_the_directory_is_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After the rename, so that the new name outlives a loss of power."""
    synced: list[str] = []
    sync = os.fsync

    def note(fd: int) -> None:
        is_directory = os.path.samestat(os.fstat(fd), tmp_path.stat())
        synced.append(",".join(sorted(os.listdir(tmp_path))) if is_directory else "file")  # noqa: PTH208
        sync(fd)

    monkeypatch.setattr(os, "fsync", note)
    replace_private_file(str(tmp_path / "users"), b"x")
    assert synced == ["file", "users"]
