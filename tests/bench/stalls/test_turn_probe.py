"""The probe of the event loop's turns: it finds a turn that takes long, in CPU time and in wall time."""

import asyncio
import gc
import time
from pathlib import Path

import uvloop

from bench.stalls.turn_probe import StallFile, probe


def test_a_long_turn_is_found(tmp_path: Path) -> None:
    """Its CPU time, its wall time and its garbage collection; a reset begins a new window."""
    run = uvloop.run
    stalls = StallFile(tmp_path / "stalls")

    async def serve() -> None:
        await asyncio.sleep(0.05)
        stalls.reset()
        end_ns = time.thread_time_ns() + 60_000_000
        while time.thread_time_ns() < end_ns:
            pass
        gc.collect()
        await asyncio.sleep(0.05)

    try:
        probe(tmp_path / "stalls")
        uvloop.run(serve())
    finally:
        uvloop.run = run
        gc.callbacks.pop()
    found = stalls.read()
    assert found.cpu_ms >= 60
    assert found.wall_ms >= 59
    assert found.collection_ms > 0
    stalls.reset()
    assert stalls.read() == (0, 0, 0)
