"""`ambermq log compact`: beside a broker that works, without one, and what it says."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ambermq.log.format.segment import segment_path
from ambermq.log.manifest.manifest import Manifest, load
from ambermq.log.read.log_reader import open_reader
from ambermq.log.storage.disk import DiskStorage
from ambermq.tools.broker.child_broker import ChildBroker
from ambermq.tools.compaction.command import parse_history
from ambermq.tools.compaction.runner import Runner
from ambermq.tools.terminal.errors import ToolError
from ambermq.tools.terminal.exit_codes import ExitCode
from tests.tools.conftest import Run
from tests.tools.sealing import load_until_sealed

LOCAL = ("--runner", "local", "--keep-history", "0s")
_SMALL = "[log]\nsegment_bytes_min = 262144\nsegment_bytes_max = 1048576\nballast_bytes = 0\n"


@pytest.fixture
def small(tmp_path: Path) -> Iterator[ChildBroker]:
    """A running broker with small segments."""
    config = tmp_path / "config.toml"
    config.write_text(_SMALL)
    child = ChildBroker(tmp_path / "data", arguments=("--config", str(config)))
    child.start()
    yield child
    child.kill()


def test_beside_a_broker_that_works_nothing_is_lost(small: ChildBroker, run: Run) -> None:
    """Messages come and go all the time; what stays is delivered from what was rewritten, and the log verifies."""
    data = ("--data", small.directory)
    assert run("send", "stays", "--size", 900, "--count", 300, *data).exit_code == 0
    load_until_sealed(small, 1)
    command = [
        sys.executable,
        "-m",
        "ambermq",
        "bench",
        "--count",
        "16000",
        "--size",
        "500",
        "--rate",
        "4000",
        *map(str, data),
    ]
    committed = 0
    with subprocess.Popen(command, stdout=subprocess.PIPE) as working:
        while committed < 2 and working.poll() is None:
            result = run("log", "compact", *LOCAL, *data, "--output", "json")
            assert result.exit_code == 0, result.stderr
            committed += json.loads(result.stdout)["is_committed"]
        assert working.wait(120) == 0
    assert committed
    assert run("log", "compact", *LOCAL, *data).exit_code == 0
    assert run("log", "verify", *data).exit_code == 0
    small.kill()
    small.start()
    assert len(run("receive", "stays", "--all", "--timeout", 2, *data).stdout.splitlines()) == 300


def test_without_a_broker_it_is_the_same(small: ChildBroker, run: Run) -> None:
    """Under the lock of the directory; the next start goes on."""
    data = ("--data", small.directory)
    run("send", "stays", "--size", 900, "--count", 100, *data)
    load_until_sealed(small, 1)
    small.stop()
    result = run("log", "compact", *LOCAL, *data)
    assert result.exit_code == 0, result.stderr
    assert "history begins at" in result.stdout
    assert "less" in result.stdout
    assert run("log", "verify", *data).exit_code == 0
    small.start()
    assert len(run("receive", "stays", "--all", "--timeout", 2, *data).stdout.splitlines()) == 100


def test_without_a_broker_the_disk_is_free_at_once(small: ChildBroker, run: Run) -> None:
    """The files that were replaced are gone when the command ends, and less is allocated than before."""
    data = ("--data", small.directory)
    run("send", "stays", "--size", 900, "--count", 100, *data)
    load_until_sealed(small, 6)
    small.stop()
    before = manifest_of(small)
    allocated = disk_bytes(small)
    result = run("log", "compact", *LOCAL, *data, "--output", "json")
    assert result.exit_code == 0, result.stderr
    outcome = json.loads(result.stdout)
    after = manifest_of(small)
    assert after.removed == ()
    replaced = {one.file_id for one in before.sealed} - {one.file_id for one in after.sealed}
    assert replaced
    assert not [one for one in replaced if Path(segment_path(str(small.directory), one)).exists()]
    assert allocated - disk_bytes(small) >= outcome["bytes_before"] - outcome["bytes_after"] - (9 << 20)
    assert run("log", "verify", *data).exit_code == 0


def test_without_a_broker_the_files_of_another_reader_stay(small: ChildBroker, run: Run) -> None:
    """What another process reads is deleted later; the command does not wait for it."""
    data = ("--data", small.directory)
    load_until_sealed(small, 1)
    small.stop()
    with open_reader(str(small.directory)) as reader:
        names = [one.file_id for one in reader.manifest.sealed]
        assert run("log", "compact", *LOCAL, *data).exit_code == 0
        assert set(names) <= set(manifest_of(small).removed)
        assert sum(1 for _ in reader.batches()) > 0
    assert run("log", "compact", *LOCAL, *data).exit_code == 0
    assert manifest_of(small).removed == ()


def manifest_of(broker: ChildBroker) -> Manifest:
    manifest = load(DiskStorage(), str(broker.directory))
    assert manifest is not None
    return manifest


def disk_bytes(broker: ChildBroker) -> int:
    """The bytes that the directory takes on the disk, as `du` counts them."""
    return 512 * sum(path.stat().st_blocks for path in broker.directory.rglob("*"))


def test_below_the_horizon_everything_is_refused(small: ChildBroker, run: Run) -> None:
    """By every way to ask, with the offset and the time at which history begins."""
    data = ("--data", small.directory)
    load_until_sealed(small, 1)
    outcome = json.loads(run("log", "compact", *LOCAL, *data, "--output", "json").stdout)
    horizon = outcome["horizon"]["offset"]
    for asked in (
        ("queue", "list", "--at", 5),
        ("queue", "show", "ambermq-bench", "--at", "1 hour ago"),
        ("log", "dump", "--since", 5),
        ("log", "dump", "--until", 5),
        ("history", "queue", "ambermq-bench", "--since", 5),
        ("history", "diff", "--since", 5, "--until", "now"),
        ("queue", "browse", "ambermq-bench", "--at", 5),
    ):
        result = run(*asked, *data)
        assert result.exit_code != 0, asked
        assert f"offset {horizon} (20" in result.stderr, (asked, result.stderr)
    dumped = run("log", "dump", *data, "--output", "json").stdout.splitlines()
    offsets = [json.loads(line)["offset"] for line in dumped]
    assert min(offsets) >= horizon


def test_a_dry_run_changes_nothing(small: ChildBroker, run: Run) -> None:
    """It says what would be done."""
    data = ("--data", small.directory)
    load_until_sealed(small, 1)
    before = run("snapshot", "list", *data, "--output", "json").stdout
    result = run("log", "compact", *LOCAL, *data, "--dry-run")
    assert (result.exit_code, "history would begin at" in result.stdout) == (0, True)
    assert run("snapshot", "list", *data, "--output", "json").stdout == before
    assert not (small.directory / "jobs").exists()
    result = run("log", "compact", *LOCAL, *data, "--dry-run", "--compress")
    assert (result.exit_code, "% less, before compression)" in result.stdout) == (0, True)


def test_what_is_no_log_is_told(run: Run, tmp_path: Path) -> None:
    """One message, and the exit code of what does not exist."""
    result = run("log", "compact", *LOCAL, "--data", tmp_path)
    assert result.exit_code == ExitCode.NOT_FOUND
    assert "no log here" in result.stderr


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (("10m",), (600_000_000, None)),
        (("0s",), (0, None)),
        (("512MiB",), (None, 512 << 20)),
        (("2GB", "7d"), (604_800_000_000, 2_000_000_000)),
        (("1h", "30m"), (1_800_000_000, None)),
        (("0",), (None, 0)),
    ],
)
def test_history_is_a_duration_or_a_size(texts: tuple[str, ...], expected: tuple[int | None, int | None]) -> None:
    """Of several of a kind the tighter one counts."""
    history = parse_history(texts)
    assert (history.age_us, history.size) == expected


def test_another_history_is_refused() -> None:
    """What is neither is a wrong command line."""
    with pytest.raises(ToolError, match="expected a duration such as 10m") as raised:
        parse_history(("soon",))
    assert raised.value.exit_code == ExitCode.USAGE


def test_a_runner_is_told_apart_by_its_methods() -> None:
    """Both runners fit the seam."""
    from ambermq.tools.compaction.local_runner import LocalRunner

    runner: Runner = LocalRunner()
    assert list(runner.count(())) == list(runner.rewrite(())) == []
    runner.close()


def test_a_base_of_the_past_is_named_by_the_running_broker(small: ChildBroker, run: Run) -> None:
    """Where no snapshot is old enough one is folded, and asked for over the management node."""
    data = ("--data", small.directory)
    load_until_sealed(small, 4)
    result = run("log", "compact", "--runner", "local", "--keep-history", "256KiB", *data, "--output", "json")
    assert result.exit_code == 0, result.stderr
    outcome = json.loads(result.stdout)
    snapshots = json.loads(run("snapshot", "list", *data, "--output", "json").stdout)
    assert snapshots[0]["end"] == outcome["horizon"]["offset"]
    assert len(snapshots) >= 2
    assert run("log", "verify", *data).exit_code == 0
