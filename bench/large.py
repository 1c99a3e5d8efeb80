"""`python -m bench.large`: a message of many MiB through the broker, beside the same bytes on the same disk.

The broker's half: `ambermq send --file` and `ambermq receive --to-file`. The disk's half: the same bytes are written in
pieces of 1 MiB, synced, and read back from the disk. The figure is the ratio of the two times. It prints the memory of
the broker above idle, too.

Then small messages, 1,000 a second and paced, pass the broker: alone, while the large message is sent and received once
more, alone again, and so on. The figure is the ratio of the medians of the 99th percentiles of their latency, from the
send to the arrival: beside the large message and alone. The disk needs four times the size of the message.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Final

from bench.brokers.ambermq import AmberMQ
from bench.load import LOADS, Window, run_load

__all__ = ["main"]

_MIB: Final = 1 << 20
_RATIO_MIN: Final = 0.5
_MEMORY_MAX: Final = 64 * _MIB
_POLL_SECONDS: Final = 0.02
_P99_RATIO_MAX: Final = 5
_SMALL: Final = LOADS["paced"]
_WARM_SECONDS: Final = 2.0
_ALONE_SECONDS: Final = 5.0
"""The least time of the small messages alone, each time; else it is half of the one beside the large message."""


class _Memory:
    """The greatest resident memory of a broker, polled by a thread."""

    def __init__(self, broker: AmberMQ) -> None:
        self._broker = broker
        self._is_over = threading.Event()
        self.idle = self.most = broker.usage().rss_bytes
        self._thread = threading.Thread(target=self._poll)
        self._thread.start()

    def end(self) -> int:
        """Return the most bytes above idle."""
        self._is_over.set()
        self._thread.join()
        return self.most - self.idle

    def _poll(self) -> None:
        while not self._is_over.wait(_POLL_SECONDS):
            self.most = max(self.most, self._broker.usage().rss_bytes)


def main(arguments: list[str] | None = None) -> int:
    """Measure, print the figures, and return 1 if one misses its bar."""
    parser = argparse.ArgumentParser(prog="python -m bench.large", description=__doc__)
    parser.add_argument("--mib", type=int, default=1024, help="size of the message")
    parser.add_argument("--directory", help="where the files are; default: a temporary directory")
    parser.add_argument("--rounds", type=int, default=3, help="how often small messages pass beside it")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(dir=options.directory) as directory:
        return _measure(Path(directory), options.mib, options.rounds)


def _measure(directory: Path, mib: int, rounds: int) -> int:
    source, result = directory / "source", directory / "result"
    with source.open("wb") as file:
        piece = os.urandom(_MIB - 8)
        for number in range(mib):
            file.write(number.to_bytes(8) + piece)
    disk_s = _disk(source, directory / "disk")
    bytes_max = f"connection.message_bytes_max={mib * _MIB + _MIB}"
    broker = AmberMQ(directory / "data", options=("--set", bytes_max))
    broker.start()
    memory = _Memory(broker)
    try:
        send_s = _command("send", "large", "--file", str(source), "--url", broker.url)
        receive_s = _command("receive", "large", "--to-file", str(result), "--url", broker.url)
        above_idle = memory.end()
        is_same = subprocess.run(["cmp", source, result], check=False).returncode == 0
        seconds = max((send_s + receive_s) / 2, _ALONE_SECONDS)
        alone, beside = [_alone(broker, seconds, directory)], list[float]()
        for _ in range(rounds):
            # The file system frees a gigabyte, and writes what is dirty, before and not while latencies are measured.
            result.unlink()
            os.sync()
            beside.append(_beside(broker, source, result, directory))
            alone.append(_alone(broker, seconds, directory))
    finally:
        memory.end()
        broker.kill()
    p99_ratio = statistics.median(beside) / statistics.median(alone)
    ratio = disk_s / (send_s + receive_s)
    print(f"message            {mib} MiB{'' if is_same else ', DAMAGED'}")
    print(f"disk alone         {disk_s:.2f} s, {mib / disk_s:.0f} MiB/s")
    print(f"send               {send_s:.2f} s, {mib / send_s:.0f} MiB/s")
    print(f"receive            {receive_s:.2f} s, {mib / receive_s:.0f} MiB/s")
    print(f"ratio              {ratio:.2f}, at least {_RATIO_MIN}")
    print(f"memory above idle  {above_idle / _MIB:.0f} MiB, at most {_MEMORY_MAX // _MIB}")
    print(f"small, alone       p99 {_row(alone)} ms")
    print(f"small, beside      p99 {_row(beside)} ms")
    print(
        f"ratio of p99       {p99_ratio:.2f}, at most {_P99_RATIO_MAX}: {_verdict(is_met=p99_ratio <= _P99_RATIO_MAX)}"
    )
    return 0 if is_same and ratio >= _RATIO_MIN and above_idle <= _MEMORY_MAX and p99_ratio <= _P99_RATIO_MAX else 1


def _row(figures: list[float]) -> str:
    """Return the median, and all figures in their order."""
    return f"{statistics.median(figures):.2f} of {', '.join(f'{figure:.2f}' for figure in figures)}"


def _verdict(*, is_met: bool) -> str:
    return "met" if is_met else "missed"


def _alone(broker: AmberMQ, seconds: float, directory: Path) -> float:
    """Return the 99th percentile of small messages in milliseconds."""
    return run_load(broker, _SMALL, Window(_WARM_SECONDS, seconds), directory)["delivery_p99"]


def _beside(broker: AmberMQ, source: Path, result: Path, directory: Path) -> float:
    """Return the 99th percentile of small messages while the large one is sent and received, in milliseconds."""

    def wait(_seconds: float) -> None:
        for words in (("send", "large", "--file", str(source)), ("receive", "large", "--to-file", str(result))):
            _run(*words, "--url", broker.url)

    return run_load(broker, _SMALL, Window(_WARM_SECONDS, 0.0), directory, wait=wait)["delivery_p99"]


def _disk(source: Path, copy: Path) -> float:
    """Return the time to write the bytes of a file, to sync them, and to read them from the disk."""
    seconds = 0.0
    with source.open("rb") as file, copy.open("w+b") as other:
        while piece := file.read(_MIB):
            began = time.monotonic()
            other.write(piece)
            seconds += time.monotonic() - began
        began = time.monotonic()
        other.flush()
        os.fsync(other.fileno())
        os.posix_fadvise(other.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        other.seek(0)
        while other.read(_MIB):
            pass
        seconds += time.monotonic() - began
    copy.unlink()
    return seconds


def _command(*words: str) -> float:
    """Run a command of the command line, and return its time without the start of the interpreter."""
    began = time.monotonic()
    _run("send", "--help")
    start_s = time.monotonic() - began
    began = time.monotonic()
    _run(*words)
    return time.monotonic() - began - start_s


def _run(*words: str) -> None:
    subprocess.run([sys.executable, "-m", "ambermq", *words], check=True, capture_output=True)


if __name__ == "__main__":
    sys.exit(main())
