"""The processes of a measured broker: their first line, their CPU time and memory, their end."""

import os
import select
import signal
import socket
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

import psutil  # type: ignore[import-untyped]  # its types are a package of their own

from bench.brokers.broker import BrokerFailed, Usage

__all__ = ["START_SECONDS", "await_listener", "first_line", "free_port", "kill_tree", "last_output", "usage_of"]

START_SECONDS: Final = 120.0
_STOP_SECONDS: Final = 10.0


def first_line(process: subprocess.Popen[bytes], seconds: float) -> str:
    """Return the first line on standard output; it is empty if the process ends or the time is over before."""
    assert process.stdout is not None
    if not select.select([process.stdout], [], [], seconds)[0]:
        return ""
    return process.stdout.readline().decode(errors="replace")


def free_port() -> int:
    """Return a port of the loopback that is free now."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port


def await_listener(port: int, process: subprocess.Popen[bytes], output: Path, name: str) -> None:
    """Return when a port of the loopback is listened to. Raises BrokerFailed, and kills the process, if that fails."""
    deadline = time.monotonic() + START_SECONDS
    while True:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        if process.poll() is not None or time.monotonic() > deadline:
            kill_tree(process)
            raise BrokerFailed(f"{name} did not become ready: {last_output(output)}")
        time.sleep(0.05)


def _tree(process: subprocess.Popen[bytes] | None) -> list[psutil.Process]:
    if process is None:
        return []
    with suppress(psutil.NoSuchProcess):
        root = psutil.Process(process.pid)
        return [root, *root.children(recursive=True)]
    return []


def usage_of(process: subprocess.Popen[bytes] | None) -> Usage:
    """Return the CPU time and memory of a process and its descendants; zeros without one."""
    cpu_seconds, rss_bytes = 0.0, 0
    for member in _tree(process):
        with suppress(psutil.NoSuchProcess):
            times = member.cpu_times()
            cpu_seconds += times.user + times.system
            rss_bytes += member.memory_info().rss
    return Usage(cpu_seconds, rss_bytes)


def kill_tree(process: subprocess.Popen[bytes] | None) -> None:
    """Send SIGKILL to a process and its descendants, and wait."""
    if process is None:
        return
    # Children first, so that the start script of RabbitMQ can reap its beam.smp.
    children = _tree(process)[1:]
    for child in children:
        with suppress(psutil.NoSuchProcess):
            child.kill()
    psutil.wait_procs(children, _STOP_SECONDS)
    if process.returncode is None:
        # The whole session: a shell that lost a child may have started another one.
        os.killpg(process.pid, signal.SIGKILL)
    process.wait(_STOP_SECONDS)
    if process.stdout is not None:
        process.stdout.close()


def last_output(path: Path) -> str:
    """Return the last words of a file with the output of a process."""
    return " ".join(path.read_text(errors="replace").split()[-60:]) or "no output"
