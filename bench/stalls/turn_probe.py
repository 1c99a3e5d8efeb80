"""`python -m bench.stalls.turn_probe FILE serve ...`: the command `ambermq` with a probe of its event loop's turns.

The probe is a timer of a millisecond in the event loop. Each time it fires, it takes the time since the last time: wall
time, less the millisecond that it waits on purpose, and CPU time of the loop's thread. The longest of both in a window
stand in the mapped file, with the longest garbage collection.

    u64 longest wall time | u64 longest CPU time | u64 longest garbage collection, all in nanoseconds
"""

import asyncio
import gc
import mmap
import sys
import time
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, Final, NamedTuple

import uvloop

from ambermq.tools.cli import main

__all__ = ["Stall", "StallFile", "probe"]

_PERIOD_S: Final = 0.001
_PERIOD_NS: Final = 1_000_000
_SLOTS: Final = 3


class Stall(NamedTuple):
    """The longest times of a window, in milliseconds."""

    wall_ms: float
    cpu_ms: float
    collection_ms: float


class StallFile:
    """The mapped file with the longest times."""

    __slots__ = ("_map", "slots")

    def __init__(self, path: Path) -> None:
        """Open the file, or create it."""
        size = 8 * _SLOTS
        if not path.exists():
            path.write_bytes(bytes(size))
        with path.open("r+b") as file:
            self._map = mmap.mmap(file.fileno(), size)
        self.slots = memoryview(self._map).cast("Q")

    def reset(self) -> None:
        """Begin a window."""
        for slot in range(_SLOTS):
            self.slots[slot] = 0

    def read(self) -> Stall:
        """Return the longest times of the window."""
        return Stall(*(self.slots[slot] / 1e6 for slot in range(_SLOTS)))

    def note(self, slot: int, time_ns: int) -> None:
        """Store a time if it is the longest of its slot."""
        self.slots[slot] = max(self.slots[slot], time_ns)


class _Probe:
    """The timer, and the times when it fired last."""

    def __init__(self, stalls: StallFile) -> None:
        self._stalls = stalls
        self._loop = asyncio.get_running_loop()
        self._wall_ns, self._cpu_ns = time.monotonic_ns(), time.thread_time_ns()
        self._collection_ns = 0
        gc.callbacks.append(self._collected)

    def fire(self) -> None:
        wall_ns, cpu_ns = time.monotonic_ns(), time.thread_time_ns()
        self._stalls.note(0, max(wall_ns - self._wall_ns - _PERIOD_NS, 0))
        self._stalls.note(1, cpu_ns - self._cpu_ns)
        self._wall_ns, self._cpu_ns = wall_ns, cpu_ns
        self._loop.call_later(_PERIOD_S, self.fire)

    def _collected(self, phase: str, _info: dict[str, int]) -> None:
        if phase == "start":
            self._collection_ns = time.monotonic_ns()
        else:
            self._stalls.note(2, time.monotonic_ns() - self._collection_ns)


def probe(path: Path) -> None:
    """Add the probe to every event loop that uvloop runs from now on."""
    stalls = StallFile(path)
    run = uvloop.run

    def run_probed(main: Coroutine[Any, Any, Any], **options: Any) -> Any:
        async def probed() -> Any:
            _Probe(stalls).fire()
            return await main

        return run(probed(), **options)

    uvloop.run = run_probed


if __name__ == "__main__":
    probe(Path(sys.argv.pop(1)))
    main()
