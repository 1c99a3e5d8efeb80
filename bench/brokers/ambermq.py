"""`ambermq serve` as a measured broker: of this checkout, or of another one."""

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from bench.brokers.broker import BrokerFailed, Usage
from bench.brokers.processes import START_SECONDS, first_line, kill_tree, last_output, usage_of

__all__ = ["AmberMQ", "command_module"]


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
        self.further: dict[str, str] = {}
        """The rest of the ready line: `data`, and `http` with an HTTP listener."""
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
        words = first_line(self._process, START_SECONDS).split()
        seconds = time.monotonic() - began
        if words[:1] != ["ready"]:
            self.kill()
            raise BrokerFailed(f"ambermq serve did not become ready: {last_output(errors)}")
        self.url = words[1]
        self.further = dict(word.split("=", 1) for word in words[2:])
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
        return usage_of(self._process)

    def kill(self) -> None:
        """Send SIGKILL and wait."""
        kill_tree(self._process)
        self._process = None


def command_module(tree: Path) -> str | None:
    """Return the module of the command: `tools` in old checkouts, None if the tree is no checkout."""
    return next((name for name in ("ambermq", "tools") if (tree / name / "__main__.py").exists()), None)
