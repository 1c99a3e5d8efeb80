"""Load on a broker: a sender process and a receiver process. The controlling process only sleeps and reads.

Counters and CPU are read together at the begin and the end of the window, so start-up, warm-up and drain do not count.
Every load uses a new queue, which is empty again at the end.
"""

import json
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psutil  # type: ignore[import-untyped]  # its types are a package of their own

from bench.brokers.broker import Broker
from bench.client.counter_file import CounterFile, Phase, Slot
from bench.client.shapes import SHAPES

__all__ = [
    "LOADS",
    "Load",
    "LoadFailed",
    "Reading",
    "Running",
    "Window",
    "drain_queue",
    "fill_queue",
    "hold_connections",
    "run_load",
    "start_load",
]

_READY_SECONDS = 120.0
_END_SECONDS = 300.0


class LoadFailed(Exception):
    """A load process failed or ended early; the message names it."""


@dataclass(frozen=True, slots=True)
class Load:
    """The messages and the rate of a load."""

    body_bytes: int
    """Bytes in the data section of each message."""
    connections: int = 1
    """Senders, queues and receivers, one of each for every connection."""
    rate: int = 0
    """Messages a second, 0 for the maximum."""
    window: int = 1000
    """Unsettled messages of a sender, and the credit of a receiver."""
    burst_bytes: int = 192 << 10
    """The maximum bytes of bodies that a sender writes at once; at least four messages."""
    backlog: int = 20_000
    """The maximum of waiting messages in all queues: the senders pause, so memory and disk stay bounded."""
    shape: str = ""
    """The client whose default message is sent, by its name in SHAPES; empty for the load client's own message."""


LOADS: Final = {
    "paced": Load(1024, rate=1000),
    "paced-100": Load(1024, rate=100),
    "paced-5k": Load(1024, rate=5000),
    "paced-20k": Load(1024, rate=20_000),
    "slow-200": Load(1024, rate=1000, connections=200),
    "one-100": Load(100),
    "one-1k": Load(1024),
    "one-1k-4m": Load(1024, window=16_000, burst_bytes=4 << 20),
    # At most 128 MiB wait in the queue; with a window below 1,000 RabbitMQ is slower by a fifth.
    "one-64k": Load(64 * 1024, backlog=2_000),
    "ten-1k": Load(1024, connections=10),
    "hundred-100": Load(100, connections=100),
    "thousand-100": Load(100, connections=1000, window=20),
    "five-thousand-100": Load(100, connections=5000, window=20, backlog=100_000),
    **{f"{client}-100": Load(100, shape=client) for client in SHAPES},
}
"""The loads by the names of their scenarios."""


@dataclass(frozen=True, slots=True)
class Window:
    """The duration of a measurement."""

    warm_seconds: float
    """Seconds of load before the window."""
    seconds: float
    """Length of the window."""


@dataclass(frozen=True, slots=True)
class Reading:
    """Counters and CPU seconds at one moment."""

    time: float
    settled: int
    received: int
    broker_cpu: float
    sender_cpu: float
    receiver_cpu: float


class Running:
    """A running load: a sender, a receiver, and their counter file."""

    def __init__(
        self, broker: Broker, counters: CounterFile, sender: subprocess.Popen[bytes], receiver: subprocess.Popen[bytes]
    ) -> None:
        self._broker = broker
        self._counters = counters
        self._sender = sender
        self._receiver = receiver

    def phase(self, phase: Phase) -> None:
        """Set the phase of sender and receiver."""
        self._counters.slots[Slot.PHASE] = phase

    def read(self) -> Reading:
        """Read counters and CPU together. Raises LoadFailed."""
        return Reading(
            time=time.monotonic(),
            settled=self._counters.slots[Slot.SETTLED],
            received=self._counters.slots[Slot.RECEIVED],
            broker_cpu=self._broker.usage().cpu_seconds,
            sender_cpu=_cpu_seconds(self._sender),
            receiver_cpu=_cpu_seconds(self._receiver),
        )

    def end(self) -> dict[str, float]:
        """End the load; return the percentiles of the measured latencies in milliseconds. Raises LoadFailed."""
        self.phase(Phase.DRAIN)
        settle, delivery = _report(self._sender), _report(self._receiver)
        return _percentiles("settle", settle) | _percentiles("delivery", delivery)


@contextmanager
def start_load(broker: Broker, load: Load, directory: Path) -> Iterator[Running]:
    """Start a load, wait until the first message has arrived, and yield it. Raises LoadFailed."""
    with _counter_file(directory) as counters:
        options = _options(broker, _new_queue(), counters, load)
        with _client("receive", options) as receiver:
            _await_ready(receiver)
            with _client("send", options) as sender:
                _await_traffic(counters, sender, receiver)
                yield Running(broker, counters, sender, receiver)


def run_load(
    broker: Broker, load: Load, window: Window, directory: Path, *, wait: Callable[[float], None] = time.sleep
) -> dict[str, float]:
    """Measure a load; return rates a second, CPU in microseconds a message, and percentiles in milliseconds.

    The window ends when `wait` returns, which is called with its length. Raises LoadFailed.
    """
    with start_load(broker, load, directory) as running:
        time.sleep(window.warm_seconds)
        running.phase(Phase.MEASURE)
        opened = running.read()
        wait(window.seconds)
        closed = running.read()
        latencies = running.end()
    return _rates(opened, closed) | latencies


def fill_queue(
    broker: Broker, queue: str, count: int, body_bytes: int, directory: Path, *, connections: int = 1
) -> float:
    """Fill a queue with durable messages; return the seconds until the last was accepted. Raises LoadFailed.

    With several connections {} in the queue's name becomes the number of each; all send the same number of messages.
    """
    load = Load(body_bytes, connections=connections, backlog=0)
    with _counter_file(directory) as counters:
        began = time.monotonic()
        with _client("send", [*_options(broker, queue, counters, load), "--count", str(count)]) as sender:
            _report(sender)
        return time.monotonic() - began


def drain_queue(broker: Broker, queue: str, count: int, body_bytes: int, directory: Path) -> int:
    """Receive until `count` messages have arrived; return the number received. Raises LoadFailed."""
    with _counter_file(directory) as counters:
        counters.slots[Slot.SENT] = count
        counters.slots[Slot.PHASE] = Phase.DRAIN
        with _client("receive", _options(broker, queue, counters, Load(body_bytes))) as receiver:
            _report(receiver)
        return int(counters.slots[Slot.RECEIVED])


@contextmanager
def hold_connections(broker: Broker, count: int, *, bare: bool) -> Iterator[None]:
    """Hold idle connections open, bare or each with a session and a receiver on one queue. Raises LoadFailed."""
    options = ["--url", broker.url, "--address", broker.address(_new_queue()), "--connections", str(count)]
    with _client("idle", [*options, *(["--bare"] if bare else [])]) as idle:
        _await_ready(idle)
        yield


def _options(broker: Broker, queue: str, counters: CounterFile, load: Load) -> list[str]:
    numbers = {
        "--connections": load.connections,
        "--body-bytes": load.body_bytes,
        "--window": load.window,
        "--backlog": load.backlog,
        "--rate": load.rate,
        "--batch-bytes": load.burst_bytes,
    }
    options = [
        "--url",
        broker.url,
        "--address",
        broker.address(queue),
        "--counters",
        str(counters.path),
        "--shape",
        load.shape,
    ]
    for name, value in numbers.items():
        options += [name, str(value)]
    return options


def _new_queue() -> str:
    """Return the name of a new queue; {} becomes the number of the connection if there are several."""
    return f"bench-{uuid.uuid4().hex[:12]}-{{}}"


@contextmanager
def _counter_file(directory: Path) -> Iterator[CounterFile]:
    counters = CounterFile.create(directory / f"counters-{uuid.uuid4().hex[:12]}")
    try:
        yield counters
    finally:
        counters.close()


@contextmanager
def _client(role: str, options: list[str]) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "bench.client.__main__", role, *options],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=Path(__file__).parent.parent,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def _await_ready(process: subprocess.Popen[bytes]) -> None:
    assert process.stdout is not None
    if process.stdout.readline().strip() != b"ready":
        raise LoadFailed(f"{process.args!r} ended before it was ready")


def _await_traffic(counters: CounterFile, *processes: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + _READY_SECONDS
    while not counters.slots[Slot.RECEIVED]:
        for process in processes:
            if process.poll() is not None:
                raise LoadFailed(f"{process.args!r} ended with code {process.returncode}")
        if time.monotonic() > deadline:
            raise LoadFailed(f"no message arrived within {_READY_SECONDS} s")
        time.sleep(0.01)


def _cpu_seconds(process: subprocess.Popen[bytes]) -> float:
    try:
        times = psutil.Process(process.pid).cpu_times()
    except psutil.NoSuchProcess as gone:
        raise LoadFailed(f"{process.args!r} ended while it was measured") from gone
    return float(times.user + times.system)


def _report(process: subprocess.Popen[bytes]) -> dict[str, float]:
    try:
        output, _ = process.communicate(timeout=_END_SECONDS)
    except subprocess.TimeoutExpired as late:
        raise LoadFailed(f"{process.args!r} did not end within {_END_SECONDS} s") from late
    if process.returncode:
        raise LoadFailed(f"{process.args!r} ended with code {process.returncode}")
    report: dict[str, float] = json.loads(output.splitlines()[-1])
    return report


def _rates(opened: Reading, closed: Reading) -> dict[str, float]:
    seconds = closed.time - opened.time
    received = closed.received - opened.received
    if not received:
        raise LoadFailed(f"no message arrived in {seconds:.1f} s")
    each = 1e6 / received
    return {
        "received": received / seconds,
        "settled": (closed.settled - opened.settled) / seconds,
        "broker_cpu": (closed.broker_cpu - opened.broker_cpu) * each,
        "sender_cpu": (closed.sender_cpu - opened.sender_cpu) * each,
        "receiver_cpu": (closed.receiver_cpu - opened.receiver_cpu) * each,
    }


def _percentiles(name: str, report: dict[str, float]) -> dict[str, float]:
    return {
        f"{name}_{share}": report[f"{share}_us"] / 1000 for share in ("p50", "p99", "p999") if f"{share}_us" in report
    }
