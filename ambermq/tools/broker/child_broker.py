"""A broker as a child process: started on a directory, awaited until it serves, killed or stopped."""

import select
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from ambermq.tools.terminal.child_command import child_command
from ambermq.tools.terminal.errors import ToolError
from ambermq.tools.terminal.exit_codes import ExitCode

__all__ = ["ChildBroker"]

_READY_SECONDS: Final = 30.0
_STOP_SECONDS: Final = 15.0


class ChildBroker:
    """`ambermq serve` beside this interpreter, on a free port of the loopback."""

    def __init__(self, directory: Path, *, arguments: Sequence[str] = ()) -> None:
        """`directory` is the data directory; what the broker logs goes to a file beside it, `<name>.stderr`."""
        self.directory = directory
        self.url = ""
        """Where it listens, once started."""
        self.stderr_path = directory.with_name(f"{directory.name}.stderr")
        """What it has logged, over all starts."""
        self._arguments = arguments
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """Its process."""
        assert self._process is not None
        return self._process.pid

    def start(self) -> float:
        """Start it and wait for its ready line; returns the seconds that took. ToolError with its last words if not."""
        began = time.monotonic()
        self.launch()
        words = self._first_line().split()
        if words[:1] != ["ready"]:
            self.kill()
            raise ToolError(
                "the broker was never ready",
                where=str(self.directory),
                expected=f"its ready line within {_READY_SECONDS:.0f} s",
                found=self.last_words(),
                code=ExitCode.CANNOT_CONNECT,
            )
        self.url = words[1]
        return time.monotonic() - began

    def launch(self) -> None:
        """Start it without waiting for anything."""
        command = child_command("serve", "--data", str(self.directory), "--port", "0")
        with self.stderr_path.open("ab") as stderr:
            self._process = subprocess.Popen(
                [*command, *self._arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=stderr
            )

    def stop(self) -> int:
        """Send SIGTERM and return its exit code; it is killed when it takes too long."""
        return self._end(signal.SIGTERM)

    def kill(self) -> int:
        """Send SIGKILL and wait; nothing where it does not run."""
        return self._end(signal.SIGKILL)

    def wait(self) -> int:
        """Wait for it to end by itself and return its exit code; it is killed when it takes too long."""
        return self._end(None)

    def last_words(self) -> str:
        """Return the last line that it has logged."""
        lines = self.stderr_path.read_text(errors="replace").splitlines()
        return lines[-1] if lines else "no word from it"

    def _end(self, number: signal.Signals | None) -> int:
        process, self._process = self._process, None
        if process is None:
            return 0
        if number is not None:
            process.send_signal(number)
        try:
            code = process.wait(_STOP_SECONDS)
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
        news = select.poll()
        news.register(stdout, select.POLLIN)
        return stdout.readline().decode() if news.poll(_READY_SECONDS * 1000) else ""
