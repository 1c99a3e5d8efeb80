"""`python -m bench.restart`: how long a broker with many waiting messages takes from a SIGKILL to its ready line.

The bytecode of the modules is cached, as in an installation. The start of an empty broker is told beside it: it is what
the interpreter and the imports take.
"""

import argparse
import os
import statistics
import sys
import tempfile
from pathlib import Path

from bench.brokers.ambermq import AmberMQ
from bench.brokers.broker import BrokerFailed
from bench.load import LoadFailed, fill_queue

__all__ = ["main"]


def main() -> int:
    """Fill, kill and start; return 0, or 1 if a broker or the load failed."""
    parser = argparse.ArgumentParser(prog="python -m bench.restart", description=__doc__)
    parser.add_argument("--messages", type=int, default=5_000_000, help="messages of 100 bytes that wait")
    parser.add_argument("--restarts", type=int, default=5, help="number of kills and starts")
    options = parser.parse_args()
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    with tempfile.TemporaryDirectory(prefix="ambermq-restart-") as name:
        directory = Path(name)
        os.environ["PYTHONPYCACHEPREFIX"] = str(directory / "bytecode")
        try:
            _report("empty", AmberMQ(directory / "empty"), options.restarts)
            broker = AmberMQ(directory / "data")
            broker.start()
            fill_queue(broker, "waiting", options.messages, 100, directory)
            _report(f"{options.messages:,} waiting", broker, options.restarts)
        except (BrokerFailed, LoadFailed) as failure:
            sys.stderr.write(f"{failure}\n")
            return 1
    return 0


def _report(title: str, broker: AmberMQ, restarts: int) -> None:
    """Print each restart's seconds and CPU seconds, and the medians. The first is after the load, and may be longer."""
    seconds, cpu = [], []
    try:
        for _ in range(restarts):
            broker.kill()
            seconds.append(broker.start())
            cpu.append(broker.usage().cpu_seconds)
    finally:
        broker.kill()
    each = ", ".join(f"{one:.2f}" for one in seconds)
    sys.stdout.write(
        f"{title}: ready after {each} s (median {statistics.median(seconds):.2f}); "
        f"CPU, median {statistics.median(cpu):.2f} s\n"
    )
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
