"""Two exports to one path: one is written, the other is refused, and what is there is whole."""

import fcntl
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from ambermq.tools.backup import writer as backup_writer
from ambermq.tools.backup.format import SNAPSHOT_PART, VERSION, Head, Table
from ambermq.tools.backup.reader import BackupReader
from ambermq.tools.backup.writer import BackupWriter
from ambermq.tools.terminal.errors import ToolError

_HEAD = Head(bytes(16), 1, 2)


def write(path: Path, content: bytes, *, as_directory: bool = False) -> None:
    """Write a backup that holds just this."""
    with BackupWriter(str(path), as_directory=as_directory, head=_HEAD, bytes_per_s=0) as writer:
        writer.begin(SNAPSHOT_PART)
        writer.write(content)
        writer.end()
        writer.finish(Table(VERSION, _HEAD.log_id.hex(), 1, "one", _HEAD.end, _HEAD.time_us, 0, 0, 0, writer.parts))


def read(path: Path) -> bytes:
    """What the backup at a path holds."""
    with BackupReader(str(path)) as reader:
        return b"".join(reader.content(0))


def once(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, before: Callable[[], None]) -> None:
    """Run something just before a function is called for the first time."""
    original, pending = getattr(owner, name), [before]

    def called(*arguments: Any, **named: Any) -> Any:
        if pending:
            pending.pop()()
        return original(*arguments, **named)

    monkeypatch.setattr(owner, name, called)


@pytest.mark.parametrize("as_directory", [False, True])
@pytest.mark.parametrize(("owner", "name"), [(backup_writer, "_locked_temporary"), (fcntl, "flock")])
def test_one_that_ends_just_then_is_not_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, as_directory: bool
) -> None:
    """Whether before the lock is made or before it is taken: the later one is refused, and leaves nothing."""
    path = tmp_path / "backup"
    once(monkeypatch, owner, name, lambda: write(path, b"first", as_directory=as_directory))
    with pytest.raises(ToolError, match="not empty" if as_directory else "exists already"):
        write(path, b"second", as_directory=as_directory)
    assert read(path) == b"first"
    assert [each.name for each in tmp_path.iterdir()] == ["backup"]


def test_one_that_begins_just_then_goes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The export with the lock writes; the other one fails and removes nothing."""
    path = tmp_path / "backup"
    first = []

    def begin() -> None:
        first.append(BackupWriter(str(path), as_directory=False, head=_HEAD, bytes_per_s=0))

    once(monkeypatch, fcntl, "flock", begin)
    with pytest.raises(ToolError, match="another export is writing"):
        write(path, b"second")
    with first[0] as writer:
        writer.begin(SNAPSHOT_PART)
        writer.write(b"first")
        writer.end()
        writer.finish(Table(VERSION, _HEAD.log_id.hex(), 1, "one", 1, 2, 0, 0, 0, writer.parts))
    assert read(path) == b"first"


@pytest.mark.parametrize("as_directory", [False, True])
@pytest.mark.parametrize("was_directory", [False, True])
def test_what_was_left_over_is_emptied(tmp_path: Path, as_directory: bool, was_directory: bool) -> None:
    """Also where it is of the other kind, and longer."""
    left = tmp_path / "backup.partial"
    if was_directory:
        (left / "below").mkdir(parents=True)
        (left / "below" / "old.part").write_bytes(b"old")
    else:
        left.write_bytes(bytes(100_000))
    write(tmp_path / "backup", b"new", as_directory=as_directory)
    assert read(tmp_path / "backup") == b"new"
    assert [each.name for each in tmp_path.iterdir()] == ["backup"]


def at_once(path: Path, *contents: bytes) -> list[bytes]:
    """Export to one path from as many threads; return what was written, not refused."""
    written: list[bytes] = []
    together = threading.Barrier(len(contents))

    def export(content: bytes) -> None:
        together.wait(60)
        with suppress(ToolError):
            write(path, content)
            written.append(content)

    threads = [threading.Thread(target=export, args=(content,)) for content in contents]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return written


def test_of_many_at_once_one_is_written(tmp_path: Path) -> None:
    """However their steps fall between each other."""
    for number in range(20):
        path = tmp_path / f"backup{number}"
        assert at_once(path, b"a", b"b", b"c") == [read(path)]
        assert not path.with_name(f"{path.name}.partial").exists()
