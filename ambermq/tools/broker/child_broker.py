"""A broker as a child process: start it on a directory, wait until it serves, stop or kill it."""

import os
import select
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from ambermq.tools.terminal.child_command import child_command
from ambermq.tools.terminal.errors import ToolError
from ambermq.tools.terminal.exit_codes import ExitCode

__all__ = ["ChildBroker"]

_READY_SECONDS: Final = 30.0
_STOP_SECONDS: Final = 15.0
_FORMAT_VARIABLE: Final = "AMBERMQ_LOGGING__FORMAT"


class ChildBroker:
    """`ambermq serve` as a child process, on a free port of the loopback interface."""

    def __init__(
        self,
        directory: Path,
        *,
        arguments: Sequence[str] = (),
        ready_seconds: float = _READY_SECONDS,
        stop_seconds: float = _STOP_SECONDS,
        command_of: Callable[..., list[str]] = child_command,
        stderr_path: Path | None = None,
    ) -> None:
        """`directory` is the data directory; the broker's log lines go to the file `<name>.stderr` next to it.

        `ready_seconds` is the timeout of a start, `stop_seconds` that of an end. `command_of` returns the command line
        for arguments of `ambermq`. `stderr_path` is another file for the log lines.
        """
        self.directory = directory
        self.url = ""
        """The URL of the broker after its start."""
        self.listen: list[str] = []
        """The addresses of its further listeners."""
        self.stderr_path = stderr_path or directory.with_name(f"{directory.name}.stderr")
        """The file with the log lines of all starts."""
        self._arguments = arguments
        self._ready_seconds = ready_seconds
        self._stop_seconds = stop_seconds
        self._command_of = command_of
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """The process id."""
        assert self._process is not None
        return self._process.pid

    def start(self) -> float:
        """Start the broker, wait for its ready line, return the seconds; raise ToolError with its last log line."""
        began = time.monotonic()
        self.launch()
        words = self._first_line().split()
        if words[:1] != ["ready"]:
            self.kill()
            raise ToolError(
                "the broker did not start",
                where=str(self.directory),
                expected=f"a ready line within {self._ready_seconds:g} s",
                found=self.last_log_line(),
                code=ExitCode.CANNOT_CONNECT,
            )
        self.url = words[1]
        self.listen = [word.removeprefix("listen=") for word in words[2:] if word.startswith("listen=")]
        return time.monotonic() - began

    def launch(self) -> None:
        """Start the broker and return at once."""
        command = self._command_of("serve", "--data", str(self.directory), "--port", "0")
        with self.stderr_path.open("ab") as stderr:
            self._process = subprocess.Popen(
                [*command, *self._arguments],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=stderr,
                # A person reads its last line; --log-format and a variable of the caller go before.
                env={_FORMAT_VARIABLE: "pretty", **os.environ},
            )

    def stop(self) -> int:
        """Send SIGTERM and return the exit code; kill the process after a timeout."""
        return self._end(signal.SIGTERM)

    def kill(self) -> int:
        """Send SIGKILL and return the exit code; 0 if the process does not run."""
        return self._end(signal.SIGKILL)

    def wait(self) -> int:
        """Wait for the process to end and return its exit code; kill it after a timeout."""
        return self._end(None)

    def last_log_line(self) -> str:
        """Return the last log line of the broker."""
        lines = self.stderr_path.read_text(errors="replace").splitlines()
        return lines[-1] if lines else "no log line"

    def _end(self, number: signal.Signals | None) -> int:
        process, self._process = self._process, None
        if process is None:
            return 0
        if number is not None:
            process.send_signal(number)
        try:
            code = process.wait(self._stop_seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            code = process.wait()
        if process.stdout is not None:
            process.stdout.close()
        return code

    def _first_line(self) -> str:
        assert self._process is not None
        stdout = self._process.stdout
        assert stdout is not None
        poller = select.poll()
        poller.register(stdout, select.POLLIN)
        return stdout.readline().decode() if poller.poll(self._ready_seconds * 1000) else ""
