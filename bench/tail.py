"""`python -m bench.tail`: the tail of one long load on a broker of this checkout: latency, turns of the loop, seconds.

With a rate: percentiles of the settle time up to p99.9, and the longest turn of the event loop. At full speed (rate 0):
the slowest second as a share of the median second. Messages have 1 KiB. With --trace, what the turns longer than 5 ms
are made of is appended to a file.
"""

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from bench.brokers.ambermq import AmberMQ
from bench.brokers.broker import BrokerFailed
from bench.client.counter_file import Phase
from bench.load import Load, LoadFailed, Running, start_load
from bench.stalls.turn_probe import StallFile

__all__ = ["main"]

_BODY_BYTES: Final = 1024
_WARM_SECONDS: Final = 5.0
_TRACED_MS: Final = "5"


def main() -> int:
    """Measure one load and print its tail; return 0, or 1 if the broker or the load failed."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.tail", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rate", type=int, default=5000, help="messages a second, 0: the maximum")
    parser.add_argument("--seconds", type=int, default=90)
    parser.add_argument("--trace", type=Path, help="a file for the parts of long turns")
    options = parser.parse_args()
    try:
        _measure(options.rate, options.seconds, options.trace)
    except (BrokerFailed, LoadFailed) as failure:
        print(failure, file=sys.stderr)
        return 1
    return 0


def _measure(rate: int, seconds: int, trace: Path | None) -> None:
    with tempfile.TemporaryDirectory(prefix="ambermq-tail-", ignore_cleanup_errors=True) as name:
        directory = Path(name)
        stalls = StallFile(directory / "turns")
        traced = () if trace is None else ("bench.stalls.turn_trace", str(trace), _TRACED_MS, "-m")
        command = (sys.executable, "-m", *traced, "bench.stalls.turn_probe", str(directory / "turns"))
        broker = AmberMQ(directory / "data", command=command)
        broker.start()
        try:
            with start_load(broker, Load(_BODY_BYTES, rate=rate), directory) as running:
                time.sleep(_WARM_SECONDS)
                stalls.reset()
                counts = _count_seconds(running, seconds)
                stall = stalls.read()
                times = running.end()
        finally:
            broker.kill()
    median = statistics.median(counts)
    print(f"messages a second: median {median:,.0f}, slowest {min(counts):,.0f} ({min(counts) / median:.3f})")
    print(f"seconds under nine tenths of the median: {sum(one < 0.9 * median for one in counts)} of {seconds}")
    print(
        f"longest turn of the loop: {stall.wall_ms:.1f} ms, CPU {stall.cpu_ms:.1f} ms, GC {stall.collection_ms:.1f} ms"
    )
    for name, time_ms in times.items():
        print(f"{name}: {time_ms:.2f} ms")


def _count_seconds(running: Running, seconds: int) -> list[float]:
    """Return the messages that arrived in each second."""
    running.phase(Phase.MEASURE)
    counts, last = [], running.read()
    for _ in range(seconds):
        time.sleep(1)
        now = running.read()
        counts.append((now.received - last.received) / (now.time - last.time))
        last = now
    return counts


if __name__ == "__main__":
    sys.exit(main())
