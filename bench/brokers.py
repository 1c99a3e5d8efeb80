"""The measured brokers: each is a child process in a directory of its own, on a free port of the loopback.

The CPU of a broker is the user and system time of its process and all descendants; its memory is their resident sets.
RabbitMQ is a shell, beam.smp and some port programs; AmberMQ is one interpreter.
"""

import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, NamedTuple, Protocol

import psutil  # type: ignore[import-untyped]  # its types are a package of their own

__all__ = ["AmberMQ", "Broker", "BrokerFailed", "RabbitMQ", "Usage", "command_module"]

_START_SECONDS = 120.0
_STOP_SECONDS = 10.0
# Debian's command on the PATH changes user and directory; this script keeps the environment.
_RABBITMQ_SCRIPTS = ("/usr/lib/rabbitmq/bin/rabbitmq-server",)
_RABBITMQ_CONFIG = """\
listeners.tcp.1 = 127.0.0.1:{port}
loopback_users = none
amqp1_0.default_user = guest
log.file.level = error
log.console = false
"""


class BrokerFailed(Exception):
    """A broker did not start or ended early; the message ends with its last output."""


class Usage(NamedTuple):
    """The CPU time and memory of a broker."""

    cpu_seconds: float
    """User and system time since it started."""
    rss_bytes: int
    """Resident memory now."""


class Broker(Protocol):
    """A broker with a directory, on which it can be started again."""

    name: str
    url: str

    def start(self) -> float:
        """Start the broker; return the seconds until it was ready. Raises BrokerFailed."""

    def address(self, queue: str) -> str:
        """Return the AMQP address of a durable queue, declared on first use."""

    def usage(self) -> Usage:
        """Return its CPU time and memory."""

    def kill(self) -> None:
        """Send SIGKILL to all its processes and wait."""


class AmberMQ:
    """`ambermq serve` with this interpreter."""

    name = "ambermq"

    def __init__(
        self,
        directory: Path,
        *,
        command: Sequence[str] = (),
        options: Sequence[str] = (),
        tree: Path | None = None,
    ) -> None:
        """Run on a directory: with another command, options of `serve`, and another checkout, if they are given."""
        self.url = ""
        self._directory = directory
        self._command = command
        self._options = options
        self._tree = tree
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, *, probe: Path | None = None) -> float:
        """Start it on its data directory and wait for its line `ready amqp://HOST:PORT data=DIR`.

        With `probe` the lateness of its event loop is written to that file (broker_probe.py).
        """
        command = [*self._command] or [str(Path(sys.executable).with_name("ambermq"))]
        if probe is not None:
            command = [sys.executable, "-m", "bench.measures.broker_probe", str(probe)]
        self._directory.mkdir(parents=True, exist_ok=True)
        errors = self._directory.with_suffix(".stderr")
        began = time.monotonic()
        with errors.open("ab") as stderr:
            self._process = subprocess.Popen(
                [
                    *command,
                    "serve",
                    "--data",
                    str(self._directory),
                    "--host",
                    "127.0.0.1",
                    "--port",
                    "0",
                    *self._options,
                ],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=stderr,
                cwd=self._tree,
                env=None if self._tree is None else os.environ | {"PYTHONPATH": str(self._tree)},
                start_new_session=True,
            )
        words = _first_line(self._process, _START_SECONDS).split()
        seconds = time.monotonic() - began
        if words[:1] != ["ready"]:
            self.kill()
            raise BrokerFailed(f"ambermq serve did not become ready: {_last_output(errors)}")
        self.url = words[1]
        return seconds

    def address(self, queue: str) -> str:
        """Return the name of the queue, which is its address."""
        return queue

    @property
    def data(self) -> Path:
        """The data directory, for commands that read it beside the broker."""
        return self._directory

    def usage(self) -> Usage:
        """Return the CPU time and memory of the interpreter and its children."""
        return _usage(self._process)

    def kill(self) -> None:
        """Send SIGKILL and wait."""
        _kill(self._process)
        self._process = None


class RabbitMQ:
    """Debian's rabbitmq-server with rabbitmq_amqp1_0, as a separate node with its own epmd."""

    name = "rabbitmq"

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._processes: list[subprocess.Popen[bytes]] = []
        self._port = _free_port()
        self.url = f"amqp://127.0.0.1:{self._port}"

    @staticmethod
    def script() -> str | None:
        """Return the start script of the server, or None if RabbitMQ is not installed."""
        known = [path for path in _RABBITMQ_SCRIPTS if os.access(path, os.X_OK)]
        return known[0] if known else shutil.which("rabbitmq-server")

    def start(self) -> float:
        """Start epmd and the node, and wait for the listener; return the seconds."""
        script, epmd = self.script(), shutil.which("epmd")
        if script is None or epmd is None:
            raise BrokerFailed("rabbitmq-server is not installed")
        self._directory.mkdir(parents=True, exist_ok=True)
        epmd_port, distribution_port = _free_port(), _free_port()
        environment = self._environment(epmd_port, distribution_port)
        began = time.monotonic()
        output = self._directory / "output"
        with output.open("ab") as file:
            self._spawn([epmd, "-port", str(epmd_port), "-address", "127.0.0.1"], environment, file)
            self._spawn([script], environment, file)
        self._await_listener(output)
        return time.monotonic() - began

    def address(self, queue: str) -> str:
        """Return the address under which the plugin declares a durable classic queue, for a durable terminus."""
        return f"/queue/{queue}"

    def usage(self) -> Usage:
        """Return the CPU time and memory of the node, without epmd."""
        return _usage(self._processes[1])

    def kill(self) -> None:
        """Send SIGKILL to node and epmd, and wait."""
        for process in reversed(self._processes):
            _kill(process)
        self._processes = []

    def _environment(self, epmd_port: int, distribution_port: int) -> dict[str, str]:
        place = self._directory
        (place / "rabbitmq.conf").write_text(_RABBITMQ_CONFIG.format(port=self._port))
        (place / "enabled_plugins").write_text("[rabbitmq_amqp1_0].\n")
        (place / "rabbitmq-env.conf").write_text("")
        return {
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": str(place),
            "LANG": "C.UTF-8",
            "ERL_EPMD_PORT": str(epmd_port),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODENAME": f"bench{self._port}@localhost",
            "RABBITMQ_CONF_ENV_FILE": str(place / "rabbitmq-env.conf"),
            "RABBITMQ_CONFIG_FILE": str(place / "rabbitmq.conf"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(place / "enabled_plugins"),
            "RABBITMQ_MNESIA_BASE": str(place / "mnesia"),
            "RABBITMQ_LOG_BASE": str(place / "log"),
            "RABBITMQ_PID_FILE": str(place / "pid"),
            "RABBITMQ_DIST_PORT": str(distribution_port),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "-kernel inet_dist_use_interface {127,0,0,1}",
        }

    def _spawn(self, command: list[str], environment: dict[str, str], output: IO[bytes]) -> None:
        self._processes.append(
            subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=environment,
                cwd=self._directory,
                start_new_session=True,
            )
        )

    def _await_listener(self, output: Path) -> None:
        deadline = time.monotonic() + _START_SECONDS
        while True:
            with suppress(OSError), socket.create_connection(("127.0.0.1", self._port), timeout=1):
                return
            if self._processes[1].poll() is not None or time.monotonic() > deadline:
                self.kill()
                raise BrokerFailed(f"rabbitmq-server did not become ready: {_last_output(output)}")
            time.sleep(0.05)


def _first_line(process: subprocess.Popen[bytes], seconds: float) -> str:
    """Return the first line on standard output; it is empty if the process ends or the time is over before."""
    assert process.stdout is not None
    if not select.select([process.stdout], [], [], seconds)[0]:
        return ""
    return process.stdout.readline().decode(errors="replace")


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port


def _tree(process: subprocess.Popen[bytes] | None) -> list[psutil.Process]:
    if process is None:
        return []
    with suppress(psutil.NoSuchProcess):
        root = psutil.Process(process.pid)
        return [root, *root.children(recursive=True)]
    return []


def _usage(process: subprocess.Popen[bytes] | None) -> Usage:
    cpu_seconds, rss_bytes = 0.0, 0
    for member in _tree(process):
        with suppress(psutil.NoSuchProcess):
            times = member.cpu_times()
            cpu_seconds += times.user + times.system
            rss_bytes += member.memory_info().rss
    return Usage(cpu_seconds, rss_bytes)


def _kill(process: subprocess.Popen[bytes] | None) -> None:
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


def _last_output(path: Path) -> str:
    return " ".join(path.read_text(errors="replace").split()[-60:]) or "no output"


def command_module(tree: Path) -> str | None:
    """Return the module of the command: `tools` in old checkouts, None if the tree is no checkout."""
    return next((name for name in ("ambermq", "tools") if (tree / name / "__main__.py").exists()), None)
