"""What a failed first start removes: what it has made, and nothing else, whatever happens meanwhile."""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from ambermq.log.config import LogConfig
from ambermq.log.errors import LockedError, LogFailed
from ambermq.log.manifest.manifest import Snapshot, load, manifest_path, note_end, segments_path, store
from ambermq.log.manifest.writer_lock import lock_path
from ambermq.log.recovery.recovery import Recovery, restoring_path
from ambermq.log.storage.disk import DiskStorage
from ambermq.log.storage.worker_threads import InlineWorkers
from ambermq.tools.broker.new_files import new_files_removed
from tests.log.lives import Life

_STORAGE = DiskStorage()
_CONFIG = LogConfig(ballast_bytes=1 << 16, segment_bytes_min=1 << 20)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A data directory that does not exist yet, in one that does not either."""
    return tmp_path / "outer" / "data"


def start(place: Path) -> None:
    """Run a start up to its first event."""
    Recovery.open(_STORAGE, str(place), _CONFIG, 1).log(InlineWorkers()).close()


def fail(place: Path, *meanwhile: Callable[[Path], object]) -> None:
    """Fail a start, after others have done something."""

    def planted() -> None:
        with new_files_removed(str(place)):
            for one in meanwhile:
                one(place)
            raise LogFailed("planted")

    with pytest.raises(LogFailed, match="planted"):
        planted()


def content(place: Path) -> dict[str, bytes]:
    """Return every file below a directory with its content."""
    return {str(one.relative_to(place)): one.read_bytes() for one in sorted(place.rglob("*")) if one.is_file()}


def test_all_that_a_start_made_goes(place: Path, tmp_path: Path) -> None:
    """The directories that it made too."""
    fail(place, start)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("count", range(1, 9))
def test_a_removal_that_is_killed_leaves_what_a_start_opens(
    place: Path, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At each removal of a name."""
    real, calls = os.unlink, 0

    def unlink(*arguments: object, **options: object) -> None:
        nonlocal calls
        calls += 1
        if calls >= count:
            raise SystemExit(9)
        real(*arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "unlink", unlink)
    with suppress(SystemExit):
        fail(place, start)
    monkeypatch.undo()
    life = Life(_STORAGE, str(place), config=_CONFIG)
    assert life.write([b"one"])
    life.log.close()


def own_files(place: Path) -> None:
    """Make files of other programs, some with names of ours."""
    place.mkdir(parents=True)
    for name in ("ballast", "notes.txt", "lock"):
        (place / name).write_text(name)
    (place / "segments").mkdir()


def test_names_that_were_there_before_stay(place: Path) -> None:
    """With their content."""
    own_files(place)
    before = content(place)
    fail(place, start)
    after = content(place)
    assert {name: after[name] for name in ("ballast", "notes.txt")} == {
        name: before[name] for name in ("ballast", "notes.txt")
    }
    assert (place / "lock").exists()
    assert not (place / "MANIFEST").exists()


def event(place: Path) -> None:
    """Run another broker from its start to its stop."""
    life = Life(_STORAGE, str(place), config=_CONFIG)
    life.write([b"one"])
    life.log.close()


def restore(place: Path) -> None:
    """Restore a backup without an event: its snapshot has all."""
    start(place)
    manifest = load(_STORAGE, str(place))
    assert manifest is not None
    snapshot = Snapshot(9, "s", 10, 10, 10, 0, is_automatic=False)
    store(_STORAGE, str(place), replace(note_end(manifest, end=10), snapshots=(snapshot,)))


def begin_restore(place: Path) -> None:
    """Leave a restore that was killed."""
    start(place)
    Path(manifest_path(str(place))).unlink()
    Path(restoring_path(str(place))).touch()


def foreign_segment(place: Path) -> None:
    """Copy a file of another program to the segments."""
    start(place)
    (Path(segments_path(str(place))) / "precious.log").write_text("precious")


def foreign_link(place: Path) -> None:
    """Put a symbolic link in the place of a segment."""
    start(place)
    (place / "elsewhere.log").write_bytes(b"")
    (Path(segments_path(str(place))) / f"{77:016x}.log").symlink_to(place / "elsewhere.log")


def linked_segments(place: Path) -> None:
    """Put a symbolic link in the place of the directory of segments."""
    start(place)
    shutil.move(segments_path(str(place)), place / "elsewhere")
    Path(segments_path(str(place))).symlink_to(place / "elsewhere")


@pytest.mark.parametrize("other", [event, restore, begin_restore, foreign_segment, foreign_link, linked_segments])
def test_what_others_made_meanwhile_stays(place: Path, other: Callable[[Path], None]) -> None:
    """All of it: a broker, a restore, a person."""
    made = dict[str, bytes]()

    def note(_: Path) -> None:
        made.update(content(place))

    fail(place, other, note)
    assert content(place) == made


def test_a_start_without_the_lock_removes_nothing(place: Path) -> None:
    """The other broker may end between the refusal and the removal."""

    def refused() -> None:
        with new_files_removed(str(place)):
            other = Recovery.open(_STORAGE, str(place), _CONFIG, 1)
            try:
                Recovery.open(_STORAGE, str(place), _CONFIG, 1)
            finally:
                other.close()

    with pytest.raises(LockedError):
        refused()
    assert Path(manifest_path(str(place))).exists()


def test_a_running_broker_keeps_all(place: Path) -> None:
    """It holds the lock."""
    lives = list[Life]()
    fail(place, lambda _: lives.append(Life(_STORAGE, str(place), config=_CONFIG)))
    assert lives[0].write([b"one"])
    lives[0].log.close()
    assert Path(lock_path(str(place))).exists()


@pytest.fixture
def removed_lock(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """A lock file that is removed between the open and the lock of it, once."""
    path, real, count = tmp_path / "lock", os.open, 0

    def opened(name: str, *arguments: int, **options: int) -> int:
        nonlocal count
        fd = real(name, *arguments, **options)
        if str(name) == str(path) and not count:
            count += 1
            path.unlink()
        return fd

    monkeypatch.setattr(os, "open", opened)
    yield path
    monkeypatch.undo()


def test_a_lock_on_a_file_that_was_removed_is_none(removed_lock: Path) -> None:
    """Two brokers would have the directory otherwise."""
    lock = _STORAGE.lock(str(removed_lock))
    with pytest.raises(LockedError):
        _STORAGE.lock(str(removed_lock))
    lock.release()
