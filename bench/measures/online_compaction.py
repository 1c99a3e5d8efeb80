"""The cost of a compaction by Spark for the broker's clients, on the same cores.

One broker with the probe (broker_probe.py), on a log of a gibibyte of which nine tenths are garbage. A queue moves
messages at half of its maximum rate, first without and then with `ambermq log compact` beside it. The second window
lasts from the start of the command to its end, with the start of Spark. The commit is measured separately too.
"""

import subprocess
import threading
import time
from pathlib import Path
from typing import Final

from ambermq.tools.terminal.child_command import child_command
from bench.brokers.ambermq import AmberMQ
from bench.brokers.broker import Broker
from bench.load import Load, LoadFailed, Window, run_load
from bench.measures.broker_probe import LatenessFile
from bench.measures.compaction_log import write_compact_log

__all__ = ["measure_compact_online"]

_SIZE: Final = 1 << 30
_FINISHED: Final = 0.9
_BODY_BYTES: Final = 1024
_TOP_WINDOW: Final = Window(1.0, 3.0)
_POLL_SECONDS: Final = 0.002


def measure_compact_online(broker: Broker, window: Window, directory: Path) -> dict[str, float]:
    """Return pauses and latencies in ms, and the time of the compaction in seconds."""
    broker.kill()
    data = directory / "compact-online"
    write_compact_log(data, size_bytes=_SIZE, finished=_FINISHED, now_us=time.time_ns() // 1000)
    lateness = LatenessFile(directory / "lateness")
    probed = AmberMQ(data)
    probed.start(probe=directory / "lateness")
    try:
        return _measure(probed, window, directory, lateness, data)
    finally:
        probed.kill()


def _measure(broker: Broker, window: Window, directory: Path, lateness: LatenessFile, data: Path) -> dict[str, float]:
    top = run_load(broker, Load(_BODY_BYTES), _TOP_WINDOW, directory)["received"]
    load = Load(_BODY_BYTES, rate=int(top / 2))
    timer = threading.Timer(window.warm_seconds, lateness.reset)
    timer.start()
    without = run_load(broker, load, window, directory)
    timer.join()
    pause_without = lateness.longest_ms
    command = _Command(data, lateness)
    during = run_load(broker, load, window, directory, wait=command.run)
    return {
        "rate": during["received"],
        "seconds": command.seconds,
        "p99_without": without["delivery_p99"],
        "p99_with": during["delivery_p99"],
        "p99": during["delivery_p99"] / without["delivery_p99"],
        "pause_without": pause_without,
        "pause_with": command.pause,
        "pause_commit": command.commit_pause,
        "commit_s": command.commit_seconds,
        "commit": command.commit_pause - pause_without,
    }


class _Command:
    """`ambermq log compact` beside the load, and the lateness of the broker's loop during it."""

    def __init__(self, data: Path, lateness: LatenessFile) -> None:
        self.seconds = 0.0
        self.pause = 0.0
        """The longest pause before the commit, in ms."""
        self.commit_pause = 0.0
        """The longest pause from the request of the commit on, in ms."""
        self.commit_seconds = 0.0
        self._data = data
        self._lateness = lateness

    def run(self, _seconds: float) -> None:
        """Run the command to its end."""
        command = child_command("log", "compact", "--data", str(self._data))
        began = time.monotonic()
        self._lateness.reset()
        process = subprocess.Popen(
            [*command, "--keep-history", "0s", "--master", "local[2]"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        committing = self._await_commit(process)
        _, errors = process.communicate()
        self.commit_pause = self._lateness.longest_ms
        self.commit_seconds, self.seconds = time.monotonic() - committing, time.monotonic() - began
        if process.returncode:
            raise LoadFailed(f"the compaction ended with {process.returncode}: {errors}")

    def _await_commit(self, process: "subprocess.Popen[str]") -> float:
        """Wait until the job has written its table; return the time."""
        while process.poll() is None and not any(self._data.glob("jobs/*/TABLE")):
            time.sleep(_POLL_SECONDS)
        self.pause = self._lateness.longest_ms
        self._lateness.reset()
        return time.monotonic()
