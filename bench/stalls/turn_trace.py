"""`python -m bench.stalls.turn_trace FILE MS serve ...`: the command `ambermq`, and what its long turns are made of.

With `-m MODULE` before the words of the command, that module is run instead: a further probe.

The functions of `_PARTS` are wrapped. Each turn of the event loop that takes longer than MS milliseconds of wall time
becomes one line of JSON, at the end of the file: when it was (seconds since the start), its wall and CPU time, its
garbage collections, and the calls and milliseconds of each part. A part's time has that of the parts that it calls.
"""

import asyncio
import gc
import importlib
import json
import runpy
import sys
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import IO, Any, Final

import uvloop

from ambermq.tools.cli import main

__all__ = ["trace"]

_PERIOD_S: Final = 0.001
_PARTS: Final = (
    ("ambermq.protocol.server.connections.connection_transport", "ConnectionTransport", "buffer_updated"),
    ("ambermq.protocol.amqp10.connection.connection", "Connection", "receive"),
    ("ambermq.protocol.gateway.connection_gateway", "ConnectionGateway", "handle_events"),
    ("ambermq.engine.loop.durable_loop", "DurableLoop", "step"),
    ("ambermq.engine.loop.durable_loop", "DurableLoop", "_decide_all"),
    ("ambermq.engine.loop.durable_loop", "dispatch"),
    ("ambermq.engine.loop.durable_loop", "DurableLoop", "completed"),
    ("ambermq.engine.loop.durable_loop", "DurableLoop", "_continue_jobs"),
    ("ambermq.log.write.log", "Log", "write"),
    ("ambermq.log.write.log", "Log", "completed"),
    ("ambermq.log.write.log", "Log", "request_sync"),
    ("ambermq.protocol.gateway.gateway", "Gateway", "carry_out"),
    ("ambermq.protocol.server.connections.connection_transport", "ConnectionTransport", "flush"),
    ("ambermq.protocol.server.vhosts.runner", "VhostRunner", "sweep"),
    ("ambermq.protocol.server.vhosts.runner", "VhostRunner", "_serve_sources"),
    ("ambermq.protocol.server.server", "Server", "_sweep"),
)


class _Turns:
    """The parts of the turn, and the file of the long ones."""

    def __init__(self, file: IO[str], turn_ms: float) -> None:
        self._file = file
        self._turn_ns = int(turn_ms * 1e6)
        self._parts: dict[str, list[int]] = {}
        self._began_ns = self._wall_ns = time.monotonic_ns()
        self._cpu_ns = time.thread_time_ns()
        self._collection_ns = self._collected_ns = 0
        gc.callbacks.append(self._collected)

    def wrapped(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return the function with a measure of its time."""
        part = self._parts.setdefault(name, [0, 0])
        clock_ns = time.monotonic_ns

        def timed(*arguments: Any, **options: Any) -> Any:
            began_ns = clock_ns()
            try:
                return function(*arguments, **options)
            finally:
                part[0] += 1
                part[1] += clock_ns() - began_ns

        return timed

    def watch(self) -> None:
        """Begin to measure turns; called in the event loop."""
        self._loop = asyncio.get_running_loop()
        self._fire()

    def _fire(self) -> None:
        wall_ns, cpu_ns = time.monotonic_ns(), time.thread_time_ns()
        turn_ns = wall_ns - self._wall_ns - int(_PERIOD_S * 1e9)
        if turn_ns > self._turn_ns:
            self._note(wall_ns, turn_ns, cpu_ns - self._cpu_ns)
        for part in self._parts.values():
            part[0] = part[1] = 0
        self._collected_ns = 0
        self._wall_ns, self._cpu_ns = time.monotonic_ns(), time.thread_time_ns()
        self._loop.call_later(_PERIOD_S, self._fire)

    def _note(self, wall_ns: int, turn_ns: int, cpu_ns: int) -> None:
        row: dict[str, Any] = {
            "s": round((wall_ns - self._began_ns) / 1e9, 3),
            "wall_ms": round(turn_ns / 1e6, 2),
            "cpu_ms": round(cpu_ns / 1e6, 2),
            "gc_ms": round(self._collected_ns / 1e6, 2),
        }
        row |= {name: [count, round(ns / 1e6, 2)] for name, (count, ns) in self._parts.items() if count}
        self._file.write(json.dumps(row) + "\n")
        self._file.flush()

    def _collected(self, phase: str, _info: dict[str, int]) -> None:
        if phase == "start":
            self._collection_ns = time.monotonic_ns()
        else:
            self._collected_ns += time.monotonic_ns() - self._collection_ns


def trace(path: str, turn_ms: float) -> None:
    """Trace every event loop that uvloop runs from now on."""
    turns = _Turns(Path(path).open("a", encoding="ascii"), turn_ms)  # noqa: SIM115 - open until the process ends
    for module, *names in _PARTS:
        owner: Any = importlib.import_module(module)
        for name in names[:-1]:
            owner = getattr(owner, name)
        setattr(owner, names[-1], turns.wrapped(".".join(names), getattr(owner, names[-1])))
    run = uvloop.run

    def run_traced(main: Coroutine[Any, Any, Any], **options: Any) -> Any:
        async def traced() -> Any:
            turns.watch()
            return await main

        return run(traced(), **options)

    uvloop.run = run_traced


if __name__ == "__main__":
    trace(sys.argv.pop(1), float(sys.argv.pop(1)))
    if sys.argv[1] == "-m":
        del sys.argv[1]
        runpy.run_module(sys.argv.pop(1), run_name="__main__")
    else:
        main()
