"""`python -m bench.backlogs.scheduled`: what very many messages for the next ten years cost, and how exact timers are.

starts     the time from SIGKILL to the ready line, with as many messages: none, waiting at once, scheduled
timers     beside the scheduled ones, 1,000 messages a second come to their time: how late a receiver has them
"""

import argparse
import os
import statistics
import struct
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from bench.backlogs.timed_sender import TimedSender, performatives
from bench.brokers.ambermq import AmberMQ
from bench.brokers.broker import BrokerFailed
from bench.client import wire
from bench.client.connection import Connection, PeerClosed
from bench.load import LoadFailed, fill_queue

__all__ = ["main"]

_LATE_MS_MAX: Final = 20.0
_YEARS_MS: Final = 10 * 365 * 86_400_000
_HOUR_MS: Final = 3_600_000
_AHEAD_MS: Final = 3000
"""The time from a message to its time, so that all are there when the first one is due."""
_SPREAD: Final = 0x9E3779B97F4A7C15
"""Due times do not rise with the messages."""


def main() -> int:
    """Measure; return 0, or 1 if the broker failed."""
    parser = argparse.ArgumentParser(prog="python -m bench.backlogs.scheduled", description=__doc__)
    parser.add_argument("--messages", type=int, default=1_000_000, help="messages over ten years")
    parser.add_argument("--restarts", type=int, default=3, help="number of kills and starts")
    parser.add_argument("--rate", type=int, default=1000, help="messages a second that come to their time")
    parser.add_argument("--seconds", type=int, default=10, help="seconds of those")
    options = parser.parse_args()
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    with tempfile.TemporaryDirectory(prefix="ambermq-scheduled-") as name:
        directory, scheduled = Path(name), AmberMQ(Path(name) / "scheduled")
        os.environ["PYTHONPYCACHEPREFIX"] = str(directory / "bytecode")
        try:
            _starts("no message", AmberMQ(directory / "empty"), options.restarts)
            waiting = AmberMQ(directory / "waiting")
            waiting.start()
            fill_queue(waiting, "waiting", options.messages, 100, directory)
            _starts(f"{options.messages:,} waiting", waiting, options.restarts)
            scheduled.start()
            _schedule(scheduled, options.messages)
            _starts(f"{options.messages:,} scheduled", scheduled, options.restarts)
            scheduled.start()
            late_ms = _late_ms(scheduled, options.rate, options.seconds)
        except (BrokerFailed, LoadFailed, PeerClosed, OSError) as failure:
            sys.stderr.write(f"{failure}\n")
            return 1
        finally:
            scheduled.kill()
    verdict = "met" if late_ms[-1] <= _LATE_MS_MAX and late_ms[0] >= 0 else "missed"
    sys.stdout.write(
        f"{options.rate:,} timers a second: late by {late_ms[0]:.1f} to {late_ms[-1]:.1f} ms, median "
        f"{statistics.median(late_ms):.1f}, p99 {late_ms[len(late_ms) * 99 // 100]:.1f}   "
        f"at most {_LATE_MS_MAX:.0f} ms: {verdict}\n"
    )
    return 0


def _schedule(broker: AmberMQ, count: int) -> None:
    began = time.monotonic()
    sender, first_ms = TimedSender(broker.url, "later"), time.time_ns() // 1_000_000 + _HOUR_MS
    sender.send(_head(first_ms + number * _SPREAD % _YEARS_MS) for number in range(count))
    sender.close()
    rate = count / (time.monotonic() - began)
    sys.stdout.write(f"scheduled {count:,} messages, {rate:,.0f} a second; {broker.usage().rss_bytes >> 20} MiB\n")
    sys.stdout.flush()


def _head(due_ms: int) -> bytes:
    """Return the header and the annotations of a message that is scheduled for a time."""
    pair = wire.symbol("x-opt-delivery-time") + struct.pack(">Bq", 0x81, due_ms)
    return wire.described(0x70, wire.boolean(True)) + b"\x00\x53\x72\xc1" + bytes((len(pair) + 1, 2)) + pair


def _starts(title: str, broker: AmberMQ, restarts: int) -> None:
    """Print the seconds of each restart, and the resident set. The first start compiles the modules."""
    seconds, cpu, rss_mib = [], [], 0
    try:
        for _ in range(restarts + 1):
            broker.kill()
            seconds.append(broker.start())
            cpu.append(broker.usage().cpu_seconds)
            rss_mib = broker.usage().rss_bytes >> 20
    finally:
        broker.kill()
    each = ", ".join(f"{one:.2f}" for one in seconds[1:])
    sys.stdout.write(
        f"{title}: ready after {each} s (median {statistics.median(seconds[1:]):.2f}); "
        f"CPU, median {statistics.median(cpu[1:]):.2f} s; {rss_mib} MiB\n"
    )
    sys.stdout.flush()


def _late_ms(broker: AmberMQ, rate: int, seconds: int) -> Sequence[float]:
    """Return how late messages came, in order."""
    first_ms = time.time_ns() // 1_000_000 + _AHEAD_MS
    due_ms = [first_ms + number * 1000 // rate for number in range(rate * seconds)]
    sender = TimedSender(broker.url, "soon")
    sender.send(_head(one) for one in due_ms)
    if time.time_ns() // 1_000_000 > first_ms:
        raise LoadFailed("the first messages were due before the last ones were there")
    receiver = Connection(broker.url, container="receiver")
    receiver.begin()
    receiver.attach("timed", "soon", receives=True, credit=len(due_ms))
    arrived_ms, buffer = list[float](), bytearray()
    while len(arrived_ms) < len(due_ms):
        for code, _ in performatives(receiver, buffer):
            if code == wire.TRANSFER:
                arrived_ms.append(time.time_ns() / 1e6)
    receiver.close()
    sender.close()
    return sorted(arrived - due for arrived, due in zip(arrived_ms, due_ms, strict=True))


if __name__ == "__main__":
    sys.exit(main())
