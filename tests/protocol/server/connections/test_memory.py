"""The memory that peers make a broker hold: freed with each connection, bounded for all, whatever they do."""

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

import psutil
import pytest

from ambermq.protocol.amqp10.performatives.classes import Close, Disposition, Flow, Transfer
from ambermq.protocol.amqp10.types.values import Symbol
from ambermq.tools.broker.child_broker import ChildBroker
from tests.interop.proton_peer import Manager, ProtonPeer
from tests.protocol.server.test_server import RECEIVER, StartBroker, fill, start_broker, still_serves
from tests.protocol.tcp import TcpWire, deadline

__all__ = ["start_broker"]

MIB: Final = 1 << 20
PIECE: Final = bytes(1_000_000)
BLOCKED: Final = Symbol("ambermq:blocked")
LIMIT: Final = Symbol("amqp:resource-limit-exceeded")


@pytest.fixture(autouse=True)
def in_time() -> Iterator[None]:
    """No test hangs."""
    with deadline():
        yield


def rss(broker: ChildBroker) -> int:
    """Return the resident memory of a broker."""
    resident: int = psutil.Process(broker.pid).memory_info().rss
    return resident


def settled_rss(broker: ChildBroker, bound: int) -> int:
    """Return the resident memory once it is below a bound, or what it is after some seconds."""
    for _ in range(50):
        if rss(broker) < bound:
            break
        time.sleep(0.1)
    return rss(broker)


WHOLE = "[engine]\nchunk_bytes = 16777216\n[log]\nbatch_bytes_max = 67108864\n"
"""Messages are in memory until they are complete, as those below `chunk_bytes` are."""


def hold(wire: TcpWire, count: int, *, handle: int = 0) -> None:
    """Attach a sender, and begin a delivery of `count` MB that never ends."""
    wire.attach("q", role=not RECEIVER, handle=handle, name=f"link{handle}")
    for number in range(count):
        first = {"delivery_id": handle, "delivery_tag": b"t"} if number == 0 else {}
        head = b"\x00\x53\x75\xb0" + (count * len(PIECE) - 8).to_bytes(4, "big") if number == 0 else b""
        wire.say(Transfer(handle=handle, more=True, **first), payload=head + PIECE[len(head) :])


def attack(url: str, container: str, wires: list[TcpWire]) -> None:
    """Begin four deliveries of 15 MB on one connection, and never end them."""
    wire = TcpWire.begun(url, container=container)
    wire.socket.settimeout(2)
    wires.append(wire)
    try:
        for handle in range(4):
            hold(wire, 15, handle=handle)
    except (OSError, AssertionError):
        return  # The broker holds it back, or has closed it.


def send_large(wire: TcpWire, size: int) -> Disposition:
    """Send a message in frames of 64 KiB, and return its outcome."""
    body = b"\x00\x53\x75\xb0" + (size - 8).to_bytes(4, "big") + bytes(size - 8)
    for start in range(0, size, 1 << 16):
        first = {"delivery_id": 0, "delivery_tag": b"h"} if start == 0 else {}
        wire.say(Transfer(handle=0, more=start + (1 << 16) < size, **first), payload=body[start : start + (1 << 16)])
    return wire.expect(Disposition)


def test_dropped_connections_leave_nothing(start_broker: StartBroker) -> None:
    """Unfinished deliveries and frames are freed when their connection is lost: 30 with 60 MB, then 300 with 900 KB."""
    broker = start_broker(WHOLE)
    with TcpWire.begun(broker.url) as wire:
        hold(wire, 15)
    before = settled_rss(broker, 64 * MIB)
    for number in range(30):
        with TcpWire.begun(broker.url, container=str(number)) as wire:
            for handle in range(4):
                hold(wire, 15, handle=handle)
    assert settled_rss(broker, before + 70 * MIB) - before < 70 * MIB
    for _ in range(300):
        with TcpWire.begun(broker.url) as wire:
            wire.give((1_000_000).to_bytes(4, "big") + b"\2\0\0\0" + bytes(900_000))
    assert settled_rss(broker, before + 70 * MIB) - before < 70 * MIB
    still_serves(broker)


def test_an_honest_sender_gets_through_beside_80_attackers(start_broker: StartBroker) -> None:
    """They offer 4,800 MB; the broker holds its budget, and accepts a message of 16 MiB from the honest one."""
    broker = start_broker(WHOLE + "[server]\nmemory_bytes_max = 134217728\nmemory_stall_ms = 2000\n")
    before, wires = rss(broker), list[TcpWire]()
    attackers = [threading.Thread(target=attack, args=(broker.url, f"a{number}", wires)) for number in range(80)]
    for attacker in attackers:
        attacker.start()
    peak = 0
    while any(attacker.is_alive() for attacker in attackers):
        peak = max(peak, rss(broker))
        time.sleep(0.05)
    with TcpWire.begun(broker.url, container="honest") as honest:
        honest.attach("large", role=not RECEIVER)
        flow = honest.expect(Flow)
        while not flow.incoming_window:
            flow = honest.expect(Flow)
        assert str(send_large(honest, 16 * MIB).state) == "Accepted()"
    assert peak - before < 256 * MIB
    still_serves(broker)
    for wire in wires:
        wire.close()
    assert settled_rss(broker, before + 48 * MIB) - before < 48 * MIB


def test_senders_are_told_and_everything_else_goes_on(start_broker: StartBroker) -> None:
    """At 80 % no delivery may begin, links keep their credit; receivers are served; the largest holder is closed."""
    broker = start_broker(WHOLE + "[server]\nmemory_bytes_max = 20000000\nmemory_stall_ms = 3000\n")
    fill(broker.url, "full", count=3, size=1000)
    with TcpWire.begun(broker.url, container="one") as large, TcpWire.begun(broker.url, container="two") as small:
        small.attach("q", role=not RECEIVER)
        assert small.expect(Flow).incoming_window
        hold(large, 9)
        hold(small, 2, handle=1)
        hold(large, 6, handle=1)
        began = time.monotonic()
        with TcpWire.begun(broker.url, container="three") as other:
            other.attach("full", role=RECEIVER, handle=0)
            other.attach("q", role=not RECEIVER, handle=1, name="up")
            told = other.expect(Flow)
            while not told.properties:
                told = other.expect(Flow)
            assert (told.incoming_window, told.properties, told.link_credit) == (0, {BLOCKED: Symbol("memory")}, 1000)
            other.flow(handle=0, delivery_count=0, link_credit=3)
            for _ in range(3):
                other.expect(Transfer)
            assert time.monotonic() - began < 2.5
            while told.properties != {BLOCKED: None}:
                told = other.expect(Flow)
            assert time.monotonic() - began > 1.5
        error = large.expect(Close).error
        assert error is not None
        assert error.condition == LIMIT
        small.say(Transfer(handle=1), payload=b"")
        small.expect(Disposition)
    log = broker.stderr_path.read_text()
    assert log.count("producers held back") == log.count("producers continue") == 1


def test_one_that_exceeds_the_budget_is_closed_at_once(start_broker: StartBroker) -> None:
    """The largest holder gets a close with the reason; the others keep their deliveries."""
    broker = start_broker(WHOLE + "[server]\nmemory_bytes_max = 20000000\n")
    with TcpWire.begun(broker.url, container="one") as large, TcpWire.begun(broker.url, container="two") as small:
        hold(small, 3)
        hold(large, 10)
        hold(large, 9, handle=1)
        error = large.expect(Close).error
        assert error is not None
        assert error.condition == LIMIT
        assert "memory_bytes_max" in str(error.description)
        small.say(Transfer(handle=0), payload=b"")
        small.expect(Disposition)


def test_unread_output_counts(start_broker: StartBroker) -> None:
    """Receivers that do not read are closed before their output takes more than the budget.

    Each of them would hold 8 MiB of output, 320 MiB in all. The bound is the budget, and 96 MiB for what is no peer's:
    the caches of hot and cold bodies, a tick's batch, and what the allocator keeps.
    """
    limits = "memory_bytes_max = 16777216\nmemory_stall_ms = 1000\noutput_high_bytes = 4194304\n"
    broker = start_broker(f"[server]\n{limits}")
    fill(broker.url, "big", count=800, size=100_000)
    before, wires = rss(broker), list[TcpWire]()
    for number in range(40):
        wire = TcpWire.begun(broker.url, container=str(number), begin={"incoming_window": 100_000})
        wires.append(wire)
        wire.attach("big", role=RECEIVER)
        wire.flow(handle=0, delivery_count=0, link_credit=100_000, incoming_window=100_000)
    for _ in range(10):
        time.sleep(0.3)
        assert rss(broker) - before < 112 * MIB
    for wire in wires:
        wire.close()
    assert "connection closed" in broker.stderr_path.read_text()
    assert Path(f"/proc/{broker.pid}").exists()


def test_links_count_with_what_they_name(start_broker: StartBroker) -> None:
    """An attach may name much: 60,000 empty lists are 60 KB on the wire, and 4 MB in the broker."""
    broker = start_broker("[server]\nmemory_bytes_max = 33554432\n")
    with TcpWire.begun(broker.url) as wire:
        wire.socket.settimeout(5)
        named = {Symbol("x"): [[] for _ in range(60_000)]}
        with suppress(OSError, AssertionError):
            for handle in range(60):
                wire.attach("q", role=not RECEIVER, handle=handle, name=f"link{handle}", properties=named)
    still_serves(broker)
    assert "connection closed" in broker.stderr_path.read_text()
    assert rss(broker) < 160 * MIB


def test_a_small_address_space_is_enough(tmp_path: Path) -> None:
    """With `ulimit -v` the load is shed before an allocation fails, and the broker serves on."""
    data, config = tmp_path / "data", tmp_path / "config.toml"
    config.write_text(WHOLE)
    options = f"--port 0 --data {data} --config {config}"
    serve = f"ulimit -v {640 * 1024}; exec {sys.executable} -m ambermq serve {options}"
    errors = tmp_path / "stderr"
    with (
        errors.open("wb") as stderr,
        subprocess.Popen(["sh", "-c", serve], stdout=subprocess.PIPE, stderr=stderr) as process,
    ):
        assert process.stdout is not None
        url = process.stdout.readline().decode().split()[1]
        wires: list[TcpWire] = []
        attackers = [threading.Thread(target=attack, args=(url, f"a{number}", wires)) for number in range(30)]
        for attacker in attackers:
            attacker.start()
        for attacker in attackers:
            attacker.join()
        for wire in wires:
            wire.close()
        fill(url, "q", count=3, size=1000)
        assert process.poll() is None
        process.terminate()
        assert process.wait(30) == 0
    assert "MemoryError" not in errors.read_text()


def test_the_figures_are_shown(start_broker: StartBroker) -> None:
    """READ of `org.ambermq.broker` names what is held, the bound, and whether senders are held back."""
    broker = start_broker(WHOLE + "[server]\nmemory_bytes_max = 20000000\n")
    with TcpWire.begun(broker.url, container="one") as wire:
        before = Manager(ProtonPeer(broker.url)).ask("READ", type="org.ambermq.broker").body
        hold(wire, 10)
        after = Manager(ProtonPeer(broker.url)).ask("READ", type="org.ambermq.broker").body
    assert before["memory_bytes_max"] == 20_000_000
    assert before["memory_bytes"] < 200_000
    assert 9_000_000 < after["memory_bytes"] < 11_000_000
    assert (after["memory_is_low"], after["memory_closed"]) == (False, 0)
