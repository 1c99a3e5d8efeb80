"""RabbitMQ as a measured broker: a shell, beam.smp and some port programs."""

import os
import shutil
import subprocess
import time
from pathlib import Path
from typing import IO, Final, final

from bench.brokers.broker import BrokerFailed, Usage
from bench.brokers.processes import await_listener, free_port, kill_tree, usage_of

__all__ = ["RabbitMQ"]

# Debian's command on the PATH changes user and directory; this script keeps the environment.
_SCRIPTS: Final = ("/usr/lib/rabbitmq/bin/rabbitmq-server",)
_CONFIG: Final = """\
listeners.tcp.1 = 127.0.0.1:{port}
loopback_users = none
amqp1_0.default_user = guest
log.file.level = error
log.console = false
"""


@final
class RabbitMQ:
    """Debian's rabbitmq-server with rabbitmq_amqp1_0, as a separate node with its own epmd."""

    name = "rabbitmq"

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._processes: list[subprocess.Popen[bytes]] = []
        self._port = free_port()
        self.url = f"amqp://127.0.0.1:{self._port}"

    @staticmethod
    def script() -> str | None:
        """Return the start script of the server, or None if RabbitMQ is not installed."""
        known = [path for path in _SCRIPTS if os.access(path, os.X_OK)]
        return known[0] if known else shutil.which("rabbitmq-server")

    def start(self) -> float:
        """Start epmd and the node, and wait for the listener; return the seconds."""
        script, epmd = self.script(), shutil.which("epmd")
        if script is None or epmd is None:
            raise BrokerFailed("rabbitmq-server is not installed")
        self._directory.mkdir(parents=True, exist_ok=True)
        epmd_port, distribution_port = free_port(), free_port()
        environment = self._environment(epmd_port, distribution_port)
        began = time.monotonic()
        output = self._directory / "output"
        with output.open("ab") as file:
            self._spawn([epmd, "-port", str(epmd_port), "-address", "127.0.0.1"], environment, file)
            self._spawn([script], environment, file)
        await_listener(self._port, self._processes[1], output, "rabbitmq-server")
        return time.monotonic() - began

    def address(self, queue: str) -> str:
        """Return the address under which the plugin declares a durable classic queue, for a durable terminus."""
        return f"/queue/{queue}"

    def usage(self) -> Usage:
        """Return the CPU time and memory of the node, without epmd."""
        return usage_of(self._processes[1])

    def kill(self) -> None:
        """Send SIGKILL to node and epmd, and wait."""
        for process in reversed(self._processes):
            kill_tree(process)
        self._processes = []

    def _environment(self, epmd_port: int, distribution_port: int) -> dict[str, str]:
        place = self._directory
        (place / "rabbitmq.conf").write_text(_CONFIG.format(port=self._port))
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
