"""The cost of reads of the log for the broker's clients: exports, queues of the past, and histories.

One broker: a queue holds 200,000 messages of 1 KiB, which have a named snapshot. Another queue moves messages at a
fifth of its maximum rate (at half of it, the load alone takes two cores). A round is four windows of that load: alone,
and beside processes that export the snapshot, show queues of the past, and show histories. In a window the commands run
one after the other, each as a new process, and the window ends with the last command. The results are medians of the
rounds, so the growth of the log affects all four windows alike.
"""

import itertools
import shutil
import statistics
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from ambermq.tools.terminal.child_command import child_command
from bench.brokers.ambermq import AmberMQ
from bench.brokers.broker import Broker
from bench.load import Load, LoadFailed, Window, fill_queue, run_load

__all__ = ["measure_beside"]

_ROUNDS: Final = 3
_QUEUE: Final = "bench-held"
_WAITING: Final = 200_000
_BODY_BYTES: Final = 1024
_TOP_WINDOW: Final = Window(1.0, 3.0)
_SNAPSHOT: Final = "bench"
_FIRST_MESSAGE: Final = "offset:1000"
_LISTING: Final = (
    ("queue", "list", "--at", "now"),
    ("queue", "browse", _QUEUE, "--at", "now"),
    ("queue", "list", "--at", "5s ago"),
    ("queue", "browse", _QUEUE, "--at", "5s ago"),
)
_HISTORIES: Final = (
    ("history", "message", _FIRST_MESSAGE),
    ("history", "queue", _QUEUE, "--since", "10s ago"),
    ("history", "tail", "--limit", "100"),
    ("history", "diff", "--since", "5s ago"),
)


def measure_beside(broker: Broker, window: Window, directory: Path) -> dict[str, float]:
    """Return latencies in ms, their ratios, the rate in messages a second, and the number of commands."""
    assert isinstance(broker, AmberMQ)
    fill_queue(broker, _QUEUE, _WAITING, _BODY_BYTES, directory)
    backup = directory / "beside.backup"
    commands = _Commands(broker.data)
    commands.run("snapshot", "create", "--name", _SNAPSHOT)
    top = run_load(broker, Load(_BODY_BYTES), _TOP_WINDOW, directory)["received"]
    load = Load(_BODY_BYTES, rate=int(top / 5))
    readers = {
        "export": commands.repeated([("snapshot", "export", _SNAPSHOT, str(backup))], then=lambda: _remove(backup)),
        "list": commands.repeated(_LISTING),
        "history": commands.repeated(_HISTORIES),
    }
    waits: dict[str, Callable[[float], None]] = {"alone": time.sleep, **readers}
    figures: dict[str, list[dict[str, float]]] = {name: [] for name in waits}
    for _ in range(_ROUNDS):
        for name, wait in waits.items():
            figures[name].append(run_load(broker, load, window, directory, wait=wait))
    p99 = {name: _median(rounds, "delivery_p99") for name, rounds in figures.items()}
    ratios = {f"p99_{name}": p99[name] / p99["alone"] for name in readers}
    return {
        "rate": min(_median(rounds, "received") for rounds in figures.values()),
        "alone": p99["alone"],
        **{name: p99[name] for name in readers},
        **ratios,
        "commands": float(commands.count),
    }


def _median(rounds: Sequence[dict[str, float]], name: str) -> float:
    return statistics.median(figures[name] for figures in rounds)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()


class _Commands:
    """Runs `ambermq` commands on the directory of the broker, each as a new process."""

    def __init__(self, data: Path) -> None:
        self.count = 0
        self._data = data

    def run(self, *words: str) -> None:
        """Run one command to its end. Raises LoadFailed if it fails."""
        command = child_command(*words, "--data", str(self._data))
        result = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
        if result.returncode:
            raise LoadFailed(f"{' '.join(words)} ended with {result.returncode}: {result.stderr}")
        self.count += 1

    def repeated(
        self, commands: Sequence[Sequence[str]], *, then: Callable[[], None] = lambda: None
    ) -> Callable[[float], None]:
        """Return a function that runs the commands in turn for some seconds, and calls `then` after each."""

        def wait(seconds: float) -> None:
            end = time.monotonic() + seconds
            for words in itertools.cycle(commands):
                self.run(*words)
                then()
                if time.monotonic() >= end:
                    return

        return wait
