"""The trace of the event loop's turns: a long turn becomes a line with its parts."""

import asyncio
import gc
import json
import time
from pathlib import Path

import pytest
import uvloop

from bench.stalls import turn_trace


def _spin() -> None:
    end_ns = time.monotonic_ns() + 40_000_000
    while time.monotonic_ns() < end_ns:
        pass


def test_a_long_turn_is_a_line_with_its_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its time, its CPU time, and each wrapped function with its calls; a short turn is none."""
    monkeypatch.setattr(turn_trace, "_PARTS", ((__name__, "_spin"),))
    monkeypatch.setattr(uvloop, "run", uvloop.run)
    monkeypatch.setitem(globals(), "_spin", _spin)

    async def serve() -> None:
        await asyncio.sleep(0.05)
        globals()["_spin"]()
        await asyncio.sleep(0.05)

    try:
        turn_trace.trace(str(tmp_path / "turns"), 30.0)
        uvloop.run(serve())
    finally:
        gc.callbacks.pop()
    lines = [json.loads(line) for line in (tmp_path / "turns").read_text(encoding="ascii").splitlines()]
    (turn,) = [line for line in lines if "_spin" in line]
    assert turn["_spin"][0] == 1
    assert turn["_spin"][1] >= 39
    assert turn["wall_ms"] >= 38
    assert turn["cpu_ms"] > 0
