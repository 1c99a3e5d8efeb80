"""A proxy in a process of its own before the broker of the module."""

import os
import select
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ambermq.tools.broker.child_broker import ChildBroker
from ambermq.tools.terminal.child_command import child_command
from tests.protocol.tcp import deadline

_READY_SECONDS = 30


class ChildProxy:
    """`ambermq proxy record` as a child process."""

    def __init__(self, path: Path, target: str, *arguments: str) -> None:
        """Start it on a free port, and wait for its ready line."""
        self.path = path
        command = ["proxy", "record", "--listen", "127.0.0.1:0", "--to", target, str(path), *arguments]
        self.process = subprocess.Popen(
            child_command(*command), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        poller = select.poll()
        poller.register(self.process.stdout, select.POLLIN)
        line = self.process.stdout.readline() if poller.poll(_READY_SECONDS * 1000) else ""
        assert line.startswith("ready "), line or self.process.communicate()[1]
        self.url = line.split()[1]

    def end(self, number: signal.Signals = signal.SIGINT) -> tuple[int, str, str]:
        """Send a signal; return exit code, output and error output."""
        self.process.send_signal(number)
        output, errors = self.process.communicate(timeout=60)
        return self.process.returncode, output, errors

    def memory_bytes(self) -> int:
        """Return the resident memory."""
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")


StartProxy = Callable[..., ChildProxy]


@pytest.fixture(autouse=True)
def in_time() -> Iterator[None]:
    """No test hangs."""
    with deadline():
        yield


@pytest.fixture
def start_proxy(broker: ChildBroker, tmp_path: Path) -> Iterator[StartProxy]:
    """Start a proxy before the module's broker, or before another target."""
    started: list[ChildProxy] = []

    def start(*arguments: str, target: str = "") -> ChildProxy:
        proxy = ChildProxy(tmp_path / f"{len(started)}.rec", target or broker.url, *arguments)
        started.append(proxy)
        return proxy

    yield start
    for proxy in started:
        if proxy.process.poll() is None:
            proxy.process.kill()
            proxy.process.communicate()


@pytest.fixture
def fresh_broker(tmp_path: Path) -> Iterator[ChildBroker]:
    """A new broker without a queue."""
    child = ChildBroker(tmp_path / "fresh")
    child.start()
    yield child
    child.kill()
