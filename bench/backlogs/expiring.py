"""`python -m bench.backlogs.expiring`: what very many messages cost that expire at different times, all in one queue.

arrival    messages of 100 bytes, each with a time to live of its own: the rate, and the resident set
starts     the time from SIGKILL to the ready line beside that of a broker without messages
rate       1,000 other messages a second expire beside them
at once    as many messages expire while the broker is stopped, and leave after its start

Each step prints the longest turn of the event loop (bench.stalls): the tick is bounded at 20 ms of CPU time.
"""

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from ambermq.tools.client.broker_url import BrokerUrl
from ambermq.tools.client.link_client import LinkClient
from ambermq.tools.client.management_client import QueueManagement
from bench.backlogs.timed_sender import TimedSender
from bench.brokers.ambermq import AmberMQ
from bench.brokers.broker import BrokerFailed
from bench.client import wire
from bench.client.connection import PeerClosed
from bench.stalls.turn_probe import StallFile

__all__ = ["main"]

_TURN_MS_MAX: Final = 20.0
_SPREAD: Final = 0x9E3779B97F4A7C15
"""Times to live do not rise with the messages."""
_YEAR_MS: Final = 365 * 86_400_000
_HOUR_MS: Final = 3_600_000
_AHEAD_MS: Final = 4000
"""The time from a message to its expiry, so that all are there when the first one expires."""
_SOON_MS: Final = 5000
_POLL_S: Final = 0.25
_END_S: Final = 600.0
_TREE: Final = Path(__file__).resolve().parents[2]


class _Probed:
    """A broker with the probe of its turns."""

    def __init__(self, directory: Path, name: str, trace: Path | None) -> None:
        stalls = directory / f"{name}.stalls"
        self.stalls = StallFile(stalls)
        traced = () if trace is None else ("bench.stalls.turn_trace", str(trace), str(_TURN_MS_MAX / 2), "-m")
        command = (sys.executable, "-m", *traced, "bench.stalls.turn_probe", str(stalls))
        self.broker = AmberMQ(directory / name, command=command, tree=_TREE)
        self.is_met = True

    def report(self, title: str, *, has_bar: bool = True) -> None:
        """Print the longest turn since the last call."""
        stall, rss_mib = self.stalls.read(), self.broker.usage().rss_bytes >> 20
        verdict = ""
        if has_bar:
            is_met = stall.cpu_ms <= _TURN_MS_MAX
            self.is_met &= is_met
            verdict = f", at most {_TURN_MS_MAX:.0f} ms: {'met' if is_met else 'missed'}"
        _say(
            f"{title}; {rss_mib} MiB; longest turn {stall.cpu_ms:.1f} ms of CPU{verdict}; wall {stall.wall_ms:.1f} ms, "
            f"collection {stall.collection_ms:.1f} ms"
        )
        self.stalls.reset()

    def send(self, queue: str, ttls_ms: Iterator[int]) -> float:
        """Send a message for each time to live; return the seconds."""
        began = time.monotonic()
        sender = TimedSender(self.broker.url, queue)
        sender.send(wire.described(0x70, wire.boolean(True), wire.NULL, wire.uint(ttl_ms)) for ttl_ms in ttls_ms)
        sender.close()
        return time.monotonic() - began

    def await_empty(self, queue: str) -> float:
        """Return the seconds until a queue has no message."""
        began = time.monotonic()
        with LinkClient.connect(BrokerUrl.parse(self.broker.url)) as client:
            management = QueueManagement(client)
            while management.read(queue)["available"]:
                if time.monotonic() - began > _END_S:
                    raise BrokerFailed(f"messages are left on {queue} after {_END_S:.0f} s")
                time.sleep(_POLL_S)
        return time.monotonic() - began


def main() -> int:
    """Measure; return 0, or 1 if the broker failed."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.backlogs.expiring",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--messages", type=int, default=1_000_000, help="messages with different expiries")
    parser.add_argument("--restarts", type=int, default=3, help="number of kills and starts")
    parser.add_argument("--rate", type=int, default=1000, help="messages a second that expire beside them")
    parser.add_argument("--seconds", type=int, default=10, help="seconds of those")
    parser.add_argument("--trace", type=Path, help="a file for the parts of long turns (bench.stalls.turn_trace)")
    options = parser.parse_args()
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    with tempfile.TemporaryDirectory(prefix="ambermq-expiring-") as name:
        directory = Path(name)
        os.environ["PYTHONPYCACHEPREFIX"] = str(directory / "bytecode")
        probed = [_Probed(directory, one, options.trace) for one in ("empty", "expiring", "expired")]
        try:
            for one in probed:
                one.broker.start()
            empty, expiring, expired = probed
            _starts(empty, "no message", options.restarts)
            _arrival(expiring, options.messages)
            _starts(expiring, f"{options.messages:,} messages", options.restarts)
            _rate(expiring, options.rate, options.seconds)
            expiring.broker.kill()
            _at_once(expired, options.messages)
        except (BrokerFailed, PeerClosed, OSError) as failure:
            sys.stderr.write(f"{failure}\n")
            return 1
        finally:
            for one in probed:
                one.broker.kill()
    return 0


def _arrival(probed: _Probed, count: int) -> None:
    probed.stalls.reset()
    seconds = probed.send("later", (_HOUR_MS + number * _SPREAD % (_YEAR_MS // 10) for number in range(count)))
    probed.report(f"arrival of {count:,}: {count / seconds:,.0f} a second")


def _starts(probed: _Probed, title: str, restarts: int) -> None:
    """Print the time of each restart. The first start compiles the modules."""
    seconds = []
    for _ in range(restarts + 1):
        probed.broker.kill()
        probed.stalls.reset()
        seconds.append(probed.broker.start())
    each = ", ".join(f"{one:.2f}" for one in seconds[1:])
    probed.report(f"{title}: ready after {each} s (median {statistics.median(seconds[1:]):.2f})", has_bar=False)


def _rate(probed: _Probed, rate: int, seconds: int) -> None:
    """Send messages that expire at a rate: each has the time to live that is left of its expiry when it is sent."""
    first_ms = time.time_ns() // 1_000_000 + _AHEAD_MS
    due_ms = (first_ms + number * 1000 // rate for number in range(rate * seconds))
    probed.stalls.reset()
    probed.send("soon", (max(1, one - time.time_ns() // 1_000_000) for one in due_ms))
    probed.report(f"arrival of {rate * seconds:,} that expire soon")
    probed.await_empty("soon")
    probed.report(f"{rate:,} expire a second")


def _at_once(probed: _Probed, count: int) -> None:
    """Send messages that live until all have arrived and some seconds more, stop the broker, and start it later."""
    end_ms = time.monotonic_ns() // 1_000_000 + max(60_000, count // 5)
    ttls_ms = (end_ms - time.monotonic_ns() // 1_000_000 + number * _SPREAD % _SOON_MS for number in range(count))
    probed.send("gone", ttls_ms)
    if time.monotonic_ns() // 1_000_000 > end_ms:
        raise BrokerFailed("messages have expired before the last ones had arrived: the machine is too slow")
    probed.broker.kill()
    time.sleep(max(0.0, (end_ms + _SOON_MS) / 1000 + 1 - time.monotonic()))
    probed.stalls.reset()
    start_s = probed.broker.start()
    seconds = probed.await_empty("gone")
    probed.report(f"{count:,} at once: ready after {start_s:.2f} s, gone {seconds:.1f} s later")


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
