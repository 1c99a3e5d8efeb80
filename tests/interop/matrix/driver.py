"""A client's driver as a child process: it is given behaviours, and says one line a behaviour.

Rule 1. Nothing is waited for without end: who says nothing for `CELL_SECONDS` is killed.
Rule 2. A driver that says `restart` waits for a line on its standard input: the broker is back.
"""

import select
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Final

__all__ = ["CELL_SECONDS", "RESTART", "Driver"]

CELL_SECONDS: Final = 90.0
RESTART: Final = "restart"
"""What a driver says when it wants the broker to be killed and started again."""
_WORDS_MAX: Final = 300


class Driver:
    """One process, from its start to its end."""

    def __init__(self, command: Sequence[str], place: Path, stderr: Path) -> None:
        """Start `command` in the directory `place`; what it complains of goes to the file `stderr`."""
        self._stderr = stderr
        with stderr.open("wb") as errors:
            self._process = subprocess.Popen(
                command, cwd=place, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors
            )

    def lines(self) -> Iterator[str]:
        """Yield the lines that it says, until it ends or says nothing for too long."""
        stdout = _pipe(self._process.stdout)
        news = select.poll()
        news.register(stdout, select.POLLIN)
        said = b""
        while news.poll(CELL_SECONDS * 1000):
            piece = stdout.read1(1 << 16)  # type: ignore[attr-defined]  # a pipe of Popen is buffered
            if not piece:
                return
            *lines, said = (said + piece).split(b"\n")
            for line in lines:
                yield line.decode(errors="replace").strip()

    def tell(self) -> None:
        """Report that the broker is back."""
        stdin = _pipe(self._process.stdin)
        stdin.write(b"restarted\n")
        stdin.flush()

    def end(self) -> int | None:
        """End it; return its exit code, None where it had to be killed."""
        _pipe(self._process.stdin).close()
        code: int | None = None
        try:
            code = self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        _pipe(self._process.stdout).close()
        return code

    def last_words(self) -> str:
        """Return the end of what it complained of, in a line."""
        return " ".join(self._stderr.read_text(errors="replace").split())[-_WORDS_MAX:]


def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
    assert pipe is not None
    return pipe
