"""A log on a disk that is mounted read-only: whatever only reads does so, and says nothing of damage."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ambermq.log.manifest.manifest import load, segments_path
from ambermq.log.storage.disk import DiskStorage
from ambermq.tools.broker.child_broker import ChildBroker
from tests.tools.conftest import Run

READERS = [
    ("log", "verify"),
    ("log", "segments"),
    ("log", "dump"),
    ("log", "repair", "--dry-run"),
    ("history", "tail"),
    ("history", "message", "m-1"),
    ("history", "queue", "q"),
    ("history", "diff", "--since", "0"),
    ("queue", "list", "--at", "now"),
    ("queue", "browse", "q", "--at", "now"),
    ("snapshot", "list"),
    ("snapshot", "show", "s"),
    ("snapshot", "verify"),
    ("vhost", "list"),
    ("vhost", "show", "default"),
]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of a broker that has stopped."""
    child = ChildBroker(tmp_path_factory.mktemp("whole") / "data")
    child.start()
    run = _run_command
    run("send", "q", "one", "--count", "3", "--id", "m", "--url", child.url)
    run("snapshot", "create", "--name", "s", "--url", child.url)
    assert child.stop() == 0
    return child.directory


def _run_command(*words: str) -> None:
    subprocess.run([sys.executable, "-m", "ambermq", *words], check=True, capture_output=True, timeout=60)


@pytest.fixture
def mounted(whole: Path, tmp_path: Path) -> Iterator[Path]:
    """The directory on a read-only mount. It needs root."""
    target = tmp_path / "mounted"
    target.mkdir()
    bound = subprocess.run(["mount", "--bind", str(whole), str(target)], capture_output=True, check=False)
    if bound.returncode:
        pytest.skip(f"a mount needs root: {bound.stderr.decode().strip()}")
    try:
        subprocess.run(["mount", "-o", "remount,ro,bind", str(target)], check=True, capture_output=True)
        yield target
    finally:
        subprocess.run(["umount", str(target)], check=True, capture_output=True)


@pytest.mark.parametrize("words", READERS, ids=" ".join)
def test_a_reader_reads_on_a_mount_that_is_read_only(run: Run, mounted: Path, words: tuple[str, ...]) -> None:
    """`log verify` called it damage, and the others failed."""
    result = run(*words, "--data", mounted)
    assert result.exit_code == 0, result.stderr
    assert "Read-only" not in result.output


@pytest.mark.parametrize("words", READERS, ids=" ".join)
def test_a_reader_opens_nothing_for_writing(
    run: Run, whole: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    """The same law where no mount can be made: every open of a file of the directory is one for reading."""
    open_file, faults = os.open, list[str]()

    def guarded(path: Any, flags: int, *rest: Any, **options: Any) -> int:
        if str(whole) in str(path) and flags & (os.O_RDWR | os.O_WRONLY | os.O_CREAT):
            faults.append(str(path))
            raise OSError(30, "Read-only file system", str(path))
        return open_file(path, flags, *rest, **options)

    monkeypatch.setattr(os, "open", guarded)
    assert run(*words, "--data", whole).exit_code == 0
    assert faults == []


def test_a_file_is_opened_for_writing_only_where_it_is_to_be_made(whole: Path) -> None:
    """A reader cannot write by mistake."""
    storage = DiskStorage()
    manifest = load(storage, str(whole))
    assert manifest is not None
    file = storage.open(f"{segments_path(str(whole))}/{manifest.active.file_id:016x}.log" if manifest.active else "")
    with pytest.raises(OSError, match="Bad file descriptor"):
        file.write([b"x"], 0)
    file.close()
