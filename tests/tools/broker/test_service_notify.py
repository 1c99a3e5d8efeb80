"""What the service manager hears, over a socket of its own."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ambermq.tools.broker.service_notify import ServiceNotifier


class _Manager:
    """A socket that receives notifications."""

    def __init__(self, path: Path | str) -> None:
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(str(path))
        self.socket.settimeout(20)

    def read(self) -> dict[str, str]:
        return dict(line.split("=", 1) for line in self.socket.recv(4096).decode().splitlines())


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[_Manager]:
    found = _Manager(tmp_path / "notify")
    yield found
    found.socket.close()


def test_a_process_without_a_manager_sends_nothing() -> None:
    notifier = ServiceNotifier({"WATCHDOG_USEC": "1000"})
    notifier.stopping()
    asyncio.run(_ready(notifier))


async def _ready(notifier: ServiceNotifier, seconds: float = 0) -> None:
    notifier.ready("serving")
    await asyncio.sleep(seconds)
    notifier.close()


def test_a_manager_that_has_gone_is_no_fault(tmp_path: Path) -> None:
    asyncio.run(_ready(ServiceNotifier({"NOTIFY_SOCKET": str(tmp_path / "gone")})))


def test_the_watchdog_is_answered_three_times_in_its_time(manager: _Manager) -> None:
    environment = {"NOTIFY_SOCKET": manager.socket.getsockname(), "WATCHDOG_USEC": "300000"}
    asyncio.run(_ready(ServiceNotifier(environment), 0.35))
    assert manager.read() == {"READY": "1", "STATUS": "serving"}
    assert [manager.read() for _ in range(3)] == [{"WATCHDOG": "1"}] * 3


def test_the_watchdog_of_another_process_is_not_answered(manager: _Manager) -> None:
    environment = {"NOTIFY_SOCKET": manager.socket.getsockname(), "WATCHDOG_USEC": "3000", "WATCHDOG_PID": "1"}
    asyncio.run(_ready(ServiceNotifier(environment, pid=2), 0.05))
    assert manager.read() == {"READY": "1", "STATUS": "serving"}
    manager.socket.setblocking(False)
    with pytest.raises(BlockingIOError):
        manager.read()


def test_an_abstract_socket_has_a_zero_byte() -> None:
    manager = _Manager(f"\0ambermq-{os.getpid()}-{time.monotonic_ns()}")
    name = manager.socket.getsockname()
    ServiceNotifier({"NOTIFY_SOCKET": "@" + name[1:].decode()}).stopping()
    assert manager.read()["STOPPING"] == "1"
    manager.socket.close()


def test_a_broker_reports_ready_its_turns_and_its_stop(manager: _Manager, tmp_path: Path) -> None:
    environment = os.environ | {"NOTIFY_SOCKET": manager.socket.getsockname(), "WATCHDOG_USEC": "300000"}
    command = [sys.executable, "-m", "ambermq", "serve", "--data", str(tmp_path / "data"), "--port", "0"]
    with subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as broker:
        ready = manager.read()
        assert ready["READY"] == "1"
        assert ready["STATUS"].startswith("serving amqp://127.0.0.1:")
        assert [manager.read() for _ in range(3)] == [{"WATCHDOG": "1"}] * 3
        broker.send_signal(signal.SIGTERM)
        while "STOPPING" not in (heard := manager.read()):
            assert heard == {"WATCHDOG": "1"}
        assert broker.wait(20) == 0


def test_a_loop_that_stands_still_does_not_answer(manager: _Manager, tmp_path: Path) -> None:
    """The manager restarts such a broker."""
    environment = os.environ | {"NOTIFY_SOCKET": manager.socket.getsockname(), "WATCHDOG_USEC": "300000"}
    command = [sys.executable, "-m", "ambermq", "serve", "--data", str(tmp_path / "data"), "--port", "0"]
    with subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as broker:
        manager.read()
        broker.send_signal(signal.SIGSTOP)
        time.sleep(0.2)
        manager.socket.settimeout(0.5)
        # What was sent before the stop, and then nothing.
        with pytest.raises(TimeoutError):
            list(iter(manager.read, None))
        broker.send_signal(signal.SIGCONT)
        broker.kill()
