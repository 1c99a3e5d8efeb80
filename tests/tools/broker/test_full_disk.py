"""A broker on a disk that is full: a tmpfs of a few mebibytes, which needs root to mount."""

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ambermq.tools.broker.child_broker import ChildBroker
from ambermq.tools.client.broker_url import BrokerUrl
from ambermq.tools.client.link_client import LinkClient
from ambermq.tools.client.management_client import Management
from ambermq.tools.terminal.errors import ToolError
from ambermq.tools.terminal.exit_codes import ExitCode
from tests.tools.conftest import Run

_MIB = 1 << 20
BrokerOn = Callable[..., ChildBroker]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 24 MiB."""
    yield from _mounted(tmp_path / "disk", mib=24)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 128 MiB."""
    yield from _mounted(tmp_path / "disk", mib=128)


def _mounted(path: Path, *, mib: int) -> Iterator[Path]:
    path.mkdir()
    if os.geteuid() or shutil.which("mount") is None:
        pytest.skip("a full disk needs root, to mount a small tmpfs")
    mount = ["mount", "-t", "tmpfs", "-o", f"size={mib}m", "tmpfs", str(path)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("a full disk needs the right to mount a small tmpfs")
    yield path
    subprocess.run(["umount", "-l", str(path)], check=True)


@pytest.fixture
def broker_on() -> Iterator[BrokerOn]:
    """Make a broker on a disk whose log lines are elsewhere and whose retention pauses for a second, until the end."""
    made: list[ChildBroker] = []

    def make(disk: Path, retention: str = "") -> ChildBroker:
        config = disk.parent / "broker.toml"
        config.write_text(f"[retention]\npause_s = 1\n{retention}")
        broker = ChildBroker(disk / "data", arguments=("--config", str(config)))
        broker.stderr_path = disk.parent / "broker.stderr"
        made.append(broker)
        return broker

    yield make
    for broker in made:
        broker.kill()


def _fill(disk: Path, *, but: int) -> None:
    """Fill the disk with a file of another program, except for so many bytes."""
    with (disk / "other").open("ab") as file:
        free = os.statvfs(disk)
        file.write(bytes(max(0, free.f_bavail * free.f_frsize - but)))


def test_a_full_disk_bricks_no_broker(run: Run, small_disk: Path, broker_on: BrokerOn) -> None:
    """Fill until it refuses, then start and stop it six times with 1 MiB free: it serves each time.

    A start takes less than 64 KiB, settlements and purges work, and so does the deletion of whole segments.
    """
    broker = broker_on(small_disk, "by_room = false\n")
    broker.start()
    while run("send", "q", "--size", 100_000, "--count", 20, "--timeout", 1, "--url", broker.url).exit_code == 0:
        pass
    _fill(small_disk, but=_MIB)
    assert broker.stop() == ExitCode.OK
    for _ in range(6):
        broker.start()
        assert run("receive", "q", "--count", 2, "--url", broker.url).exit_code == ExitCode.OK
        assert broker.stop() == ExitCode.OK
        assert _free(small_disk) > _MIB // 2
    broker.start()
    assert run("queue", "purge", "q", "--url", broker.url).exit_code == ExitCode.OK
    before = _free(small_disk)
    freeing = ["log", "compact", "--data", broker.directory, "--whole-segments", "--keep-history", "0s"]
    assert run(*freeing).exit_code == ExitCode.OK
    assert broker.stop() == ExitCode.OK
    broker.start()
    assert _free(small_disk) > before + 8 * _MIB
    assert run("send", "q", "again", "--timeout", 20, "--url", broker.url).exit_code == ExitCode.OK
    assert broker.stop() == ExitCode.OK


def test_a_first_start_on_a_full_disk_leaves_nothing(small_disk: Path, broker_on: BrokerOn) -> None:
    """Exit code 74 with advice about space, and the disk as it was."""
    _fill(small_disk, but=0)
    broker = broker_on(small_disk)
    with pytest.raises(ToolError, match="free space on the disk of the directory"):
        broker.start()
    assert [one.name for one in small_disk.iterdir()] == ["other"]


def test_history_makes_room_for_publishing(run: Run, disk: Path, broker_on: BrokerOn) -> None:
    """Ten rounds that write twice the disk pass without a word about what is kept; the log says what happens."""
    broker = broker_on(disk)
    broker.start()
    for _ in range(10):
        sent = run("send", "q", "--size", 2500, "--count", 10_000, "--timeout", 60, "--url", broker.url)
        assert sent.exit_code == ExitCode.OK, sent.stderr
        assert run("queue", "purge", "q", "--url", broker.url).exit_code == ExitCode.OK
    assert broker.stop() == ExitCode.OK
    told = broker.stderr_path.read_text()
    assert "disk fills up" in told
    assert "reason=room" in told
    assert "history may be deleted" not in told


def test_a_snapshot_that_a_person_asked_for_stays(run: Run, small_disk: Path, broker_on: BrokerOn) -> None:
    """Where it keeps the history, publishing is held back with the reason, and the figures name the snapshot."""
    broker = broker_on(small_disk)
    broker.start()
    assert run("snapshot", "create", "--name", "mine", "--url", broker.url).exit_code == ExitCode.OK
    for _ in range(4):
        sent = run("send", "q", "--size", 500, "--count", 16_000, "--timeout", 5, "--url", broker.url)
        run("queue", "purge", "q", "--url", broker.url)
        if sent.exit_code:
            break
    assert sent.exit_code == ExitCode.TIMEOUT, sent.stderr
    assert "waiting: the broker gives no credit and no outcome (disk)" in sent.stderr
    assert "held back by the broker: disk" in sent.stderr
    snapshots = run("snapshot", "list", "--data", broker.directory, "--output", "json").stdout
    assert '"mine"' in snapshots
    end = time.monotonic() + 60
    with LinkClient.connect(BrokerUrl.parse(broker.url)) as client:
        figures = Management(client).request("READ", "org.ambermq.broker", {})[1]
        # The snapshot is named after the retention, a process of its own, has found nothing else to delete.
        while figures["room_keeper"] is None and time.monotonic() < end:
            time.sleep(0.2)
            figures = Management(client).request("READ", "org.ambermq.broker", {})[1]
    assert figures["blocked"] == "disk"
    assert figures["room_keeper"] == "mine"
    assert figures["room_bytes"] < figures["room_low_bytes"] < figures["room_bytes_min"] < figures["disk_bytes"]
    assert run("snapshot", "delete", "mine", "--url", broker.url).exit_code == ExitCode.OK
    assert run("send", "q", "again", "--timeout", 60, "--url", broker.url).exit_code == ExitCode.OK
    assert broker.stop() == ExitCode.OK
    told = broker.stderr_path.read_text()
    assert "producers held back" in told
    assert "producers continue" in told


def _free(disk: Path) -> int:
    status = os.statvfs(disk)
    return status.f_bavail * status.f_frsize
