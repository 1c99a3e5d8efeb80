"""Damage under a broker that starts or serves: what can be served is served, and what is missing is told."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ambermq.log.manifest.manifest import Manifest, load
from ambermq.log.storage.disk import DiskStorage
from ambermq.tools.broker.child_broker import ChildBroker
from ambermq.tools.client.broker_url import BrokerUrl
from ambermq.tools.client.link_client import LinkClient
from ambermq.tools.client.management_client import Management
from ambermq.tools.terminal.errors import ToolError
from ambermq.tools.terminal.exit_codes import ExitCode
from tests.tools.conftest import Run

_COUNT = 20
_DEADLINE_S = 30


@pytest.fixture
def child(tmp_path: Path) -> Iterator[ChildBroker]:
    """A broker with messages, of which a snapshot knows, that has stopped."""
    broker = ChildBroker(tmp_path / "data")
    broker.start()
    yield broker
    broker.kill()


def filled(run: Run, child: ChildBroker) -> None:
    """Send messages, take a snapshot after them, and stop."""
    assert run("send", "q", "message", "--count", _COUNT, "--url", child.url).exit_code == 0
    assert run("snapshot", "create", "--name", "s", "--url", child.url).exit_code == 0
    assert child.stop() == 0


def manifest_of(child: ChildBroker) -> Manifest:
    """Return the manifest of a broker's directory."""
    manifest = load(DiskStorage(), str(child.directory))
    assert manifest is not None
    return manifest


def broker_figures(url: str) -> dict[str, Any]:
    """Return the attributes of the broker's management type."""
    with LinkClient.connect(BrokerUrl.parse(url)) as client:
        return Management(client).request("READ", "org.ambermq.broker", {})[1]


@pytest.mark.parametrize("position", [13, 60])
def test_a_wrong_byte_in_the_header_of_a_sealed_segment_is_told_and_the_segment_served(
    run: Run, child: ChildBroker, position: int
) -> None:
    """The broker ended a second after its ready line, at every start."""
    filled(run, child)
    child.start()
    child.stop()
    path = Path(manifest_of(child).sealed[0].at(str(child.directory)).path)
    content = bytearray(path.read_bytes())
    content[position] ^= 0x55
    path.write_bytes(content)
    for _ in range(2):
        child.start()
        deadline = time.monotonic() + _DEADLINE_S
        while not broker_figures(child.url)["damaged_segments"]:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        assert str(path) in broker_figures(child.url)["damaged_segments"][0]
        time.sleep(1.2)
        assert "segment damaged" in child.stderr_path.read_text()
        assert child.stop() == ExitCode.OK
    child.start()
    received = run("receive", "q", "--count", _COUNT, "--timeout", "10", "--url", child.url)
    assert (received.exit_code, len(received.stdout.splitlines())) == (0, _COUNT)


def _active_path(child: ChildBroker) -> Path:
    manifest = manifest_of(child)
    assert manifest.active is not None
    return Path(child.directory) / "segments" / f"{manifest.active.file_id:016x}.log"


@pytest.mark.parametrize("signal_name", ["stop", "kill"])
def test_a_zeroed_start_of_the_active_segment_is_missed_aloud(
    run: Run, child: ChildBroker, tmp_path: Path, signal_name: str
) -> None:
    """The broker opened an empty log, `log verify` found nothing, and what was accepted was gone."""
    assert run("send", "q", "message", "--count", _COUNT, "--url", child.url).exit_code == 0
    getattr(child, signal_name)()
    path = _active_path(child)
    with path.open("rb+") as file:
        file.write(bytes(512))
    words = f"{path} is damaged at position 0: expected a segment header, found zeros"
    verified = run("log", "verify", "--data", child.directory)
    assert (verified.exit_code, words in verified.stderr) == (ExitCode.DAMAGED, True)
    with pytest.raises(ToolError, match="expected a segment header, found zeros"):
        child.start()
    assert run("log", "repair", "--data", child.directory).exit_code == 0
    child.start()
    received = run("receive", "q", "--count", _COUNT, "--timeout", "10", "--url", child.url)
    assert (received.exit_code, len(received.stdout.splitlines())) == (0, _COUNT)


def test_a_missing_segment_below_a_snapshot_is_missed_aloud(run: Run, child: ChildBroker) -> None:
    """The start reads only what follows its snapshot."""
    filled(run, child)
    child.start()
    child.stop()
    Path(manifest_of(child).sealed[0].at(str(child.directory)).path).unlink()
    with pytest.raises(ToolError, match="expected a segment that the manifest names, found no file"):
        child.start()
