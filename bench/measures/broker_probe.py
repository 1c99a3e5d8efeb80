"""`python -m bench.measures.broker_probe FILE serve ...`: the command `ambermq` with a probe in its event loop.

The probe is a timer of a millisecond. It stores its longest lateness in nanoseconds in the first slot of a mapped file.
A measurement sets the slot to 0 at the begin of a window.
"""

import asyncio
import mmap
import sys
import time
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, Final

import uvloop

from ambermq.tools.cli import main

__all__ = ["LatenessFile", "probe"]

_PERIOD_S: Final = 0.001
_PERIOD_NS: Final = 1_000_000


class LatenessFile:
    """The mapped file with the longest lateness."""

    __slots__ = ("_map", "_slots")

    def __init__(self, path: Path) -> None:
        """Open the file, or create it."""
        if not path.exists():
            path.write_bytes(bytes(8))
        with path.open("r+b") as file:
            self._map = mmap.mmap(file.fileno(), 8)
        self._slots = memoryview(self._map).cast("Q")

    def reset(self) -> None:
        """Begin a window."""
        self._slots[0] = 0

    def note(self, late_ns: int) -> None:
        """Store a lateness if it is the longest of the window."""
        self._slots[0] = max(self._slots[0], late_ns)

    @property
    def longest_ms(self) -> float:
        """The longest lateness of the window, in milliseconds."""
        return self._slots[0] / 1e6


def probe(path: Path) -> None:
    """Add the probe to every event loop that uvloop runs from now on."""
    lateness = LatenessFile(path)
    run = uvloop.run

    def run_probed(main: Coroutine[Any, Any, Any], **options: Any) -> Any:
        async def probed() -> Any:
            _tick(asyncio.get_running_loop(), lateness, time.monotonic_ns())
            return await main

        return run(probed(), **options)

    uvloop.run = run_probed


def _tick(loop: asyncio.AbstractEventLoop, lateness: LatenessFile, due_ns: int) -> None:
    now_ns = time.monotonic_ns()
    lateness.note(max(now_ns - due_ns, 0))
    loop.call_later(_PERIOD_S, _tick, loop, lateness, now_ns + _PERIOD_NS)


if __name__ == "__main__":
    probe(Path(sys.argv.pop(1)))
    main()
