"""A real broker with few descriptors, few connections or a flood: it serves, says so, and its log stays small."""

import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psutil
import pytest

from ambermq.protocol.amqp10.framing.frames import AMQP_HEADER, SASL_FRAME, SASL_HEADER, encode_frame
from ambermq.protocol.amqp10.performatives.classes import Attach, Close, Detach, Open, SaslInit
from ambermq.tools.broker.child_broker import ChildBroker
from tests.interop.proton_peer import Manager, ProtonPeer
from tests.protocol.peers import Wire
from tests.protocol.server.checks import RECEIVER, goodbye, still_serves
from tests.protocol.tcp import TcpWire, deadline


@pytest.fixture(autouse=True)
def in_time() -> Iterator[None]:
    """No test hangs."""
    with deadline():
        yield


@pytest.fixture
def child(tmp_path: Path) -> Iterator[ChildBroker]:
    """A broker that is not started."""
    broker = ChildBroker(tmp_path / "data")
    yield broker
    broker.kill()


def started(broker: ChildBroker, monkeypatch: pytest.MonkeyPatch, *, descriptors: int) -> ChildBroker:
    """Start a broker with few descriptors."""
    popen = subprocess.Popen

    def limited(command: list[str], **options: object) -> subprocess.Popen[bytes]:
        shell = ["sh", "-c", f'ulimit -n {descriptors}; exec "$@"', "sh", *command]
        return popen(shell, **options)  # type: ignore[call-overload,no-any-return]

    monkeypatch.setattr(subprocess, "Popen", limited)
    broker.start()
    monkeypatch.setattr(subprocess, "Popen", popen)
    return broker


@pytest.mark.parametrize(("descriptors", "strangers", "lowered"), [(64, 200, 16), (1024, 1100, 952)])
def test_strangers_take_no_descriptor_of_the_log(
    child: ChildBroker, monkeypatch: pytest.MonkeyPatch, descriptors: int, strangers: int, lowered: int
) -> None:
    """With `ulimit -n`: the limit of connections is lowered with a log line, and the broker serves and stops."""
    broker = started(child, monkeypatch, descriptors=descriptors)
    assert "connections_max lowered advice='raise the limit of open files" in broker.stderr_path.read_text()
    # Proton waits by select, which takes no descriptor above 1,023.
    manager = Manager(ProtonPeer(broker.url))
    with ExitStack() as stack:
        for _ in range(strangers):
            stack.enter_context(TcpWire(broker.url)).give(AMQP_HEADER)
        time.sleep(0.2)
        still_serves(broker)
        figures: Any = manager.ask("READ", type="org.ambermq.broker").body
        assert figures["connections_max"] == lowered
        assert figures["descriptors_max"] == descriptors
        assert figures["connections_dropped"] >= strangers - lowered
        assert psutil.Process(broker.pid).num_fds() < descriptors - 10
    assert broker.stop() == 0


def test_too_few_descriptors_for_a_broker_are_refused(child: ChildBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    """With what is needed and how to get it; nothing is made of the directory."""
    with pytest.raises(Exception, match="too few open files"):
        started(child, monkeypatch, descriptors=40)
    assert not child.directory.exists()


def test_strangers_at_the_limit_keep_no_client_out(child: ChildBroker, tmp_path: Path) -> None:
    """They connect again and again; before, a client that came meanwhile was refused each time."""
    config = tmp_path / "config.toml"
    config.write_text("[server]\nconnections_max = 40\n")
    broker = ChildBroker(child.directory, arguments=("--config", str(config)))
    broker.start()
    with ExitStack() as stack:
        entered = 0
        for _ in range(40):
            stack.enter_context(TcpWire(broker.url))
        for _ in range(100):
            for _ in range(5):
                stack.enter_context(TcpWire(broker.url))
            with TcpWire(broker.url) as wire:
                wire.give(AMQP_HEADER + Wire.frame(Open(container_id="honest")))
                frame = wire.next()
                entered += frame is not None and isinstance(frame[0], Open)
                wire.say(Close())
    broker.kill()
    assert entered == 100


def test_a_flood_of_faults_leaves_few_lines(child: ChildBroker) -> None:
    """Malformed, refused and failed: ten lines a kind, and their number when the broker ends."""
    child.start()
    before = child.stderr_path.stat().st_size
    for number in range(2000):
        with TcpWire(child.url) as wire:
            data = (b"GET / HTTP/1.1\r\n", AMQP_HEADER + b"\x00\x00\x00\x07\x02\x00\x00\x00")[number % 2]
            wire.give(data)
            wire.rest()
    flooded = child.stderr_path.stat().st_size - before
    assert flooded < 5000
    still_serves(child)
    assert child.stop() == 0
    log = child.stderr_path.read_text()
    assert log.count("connection failed") == 11
    assert "more=1990" in log


def test_a_user_has_a_limit_if_it_is_configured(child: ChildBroker, tmp_path: Path) -> None:
    """The open of a further connection is refused with the condition; the end of one makes room."""
    config = tmp_path / "config.toml"
    config.write_text('[server]\nuser_connections_max = 2\n[users]\nalice = "a"\nbob = "b"\n')
    broker = ChildBroker(child.directory, arguments=("--config", str(config)))
    broker.start()

    def opened(user: str) -> TcpWire:
        wire = TcpWire(broker.url)
        wire.give(plain(user))
        return wire

    alices = [opened("alice"), opened("alice")]
    for wire in alices:
        wire.expect(Open)
    with opened("alice") as third:
        assert goodbye(third) == ("close", "amqp:resource-limit-exceeded")
    with opened("bob") as bob:
        bob.expect(Open)
    alices[0].say(Close())
    alices[0].expect(Close)
    with opened("alice") as third:
        third.expect(Open)
    for wire in alices:
        wire.close()
    broker.kill()


def plain(user: str) -> bytes:
    """The bytes of a client that authenticates and opens; the password is the first letter of the name."""
    response = b"\0" + user.encode() + b"\0" + user[:1].encode()
    init = encode_frame(0, SaslInit(mechanism="PLAIN", initial_response=response), frame_type=SASL_FRAME)
    return SASL_HEADER + init + AMQP_HEADER + Wire.frame(Open(container_id=""))


def test_a_long_name_leaves_no_traceback(child: ChildBroker) -> None:
    """Open with max-frame-size 512, begin, attach and detach in one write: a close, and one line in the log."""
    child.start()
    with TcpWire(child.url) as wire:
        frames = (
            Open(container_id="small", max_frame_size=512),
            Wire.begin(),
            Attach(name="n" * 1000, handle=0, role=RECEIVER),
            Detach(handle=0),
        )
        wire.give(AMQP_HEADER + b"".join(map(Wire.frame, frames)))
        assert goodbye(wire) == ("close", "amqp:frame-size-too-small")
    assert "Traceback" not in child.stderr_path.read_text()
    still_serves(child)
