"""A campaign: a broker is killed with SIGKILL again and again under load, some times while it recovers.

The load is messages through queues, and updates of one of these queues and of a muxer.

Everything random comes from one seed, so a failed campaign can be tried again; the moments of the machine cannot.
"""

import random
import time
from dataclasses import dataclass
from pathlib import Path

from ambermq.tools.broker.child_broker import ChildBroker
from ambermq.tools.terminal.errors import ToolError
from tests.crash.pair import Pair
from tests.crash.updates import Updates

__all__ = ["Result", "drain", "run_campaign"]

_DRAIN_SECONDS = 120.0
_QUIET_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class Result:
    """What a campaign came to."""

    kills: int
    killed_recovering: int
    """Kills of a broker that was not ready yet."""
    sent: int
    accepted: int
    arrived: int
    repeated: int
    updated: int
    """Updates of the queue and of the muxer that were acknowledged, or found after a kill."""
    looks: int
    """How often it was asked what a broker that has recovered goes by."""
    faults: tuple[str, ...]
    """What went wrong; empty when every promise was kept."""


def run_campaign(directory: Path, *, seed: int, kills: int, pairs: int = 3, rate: int = 2000) -> Result:
    """Run a campaign in a directory of its own and return what it came to."""
    chance = random.Random(seed)
    broker = ChildBroker(directory / "data")
    broker.start()
    traffic = [Pair(f"q{number}", lambda: broker.url, rate=rate) for number in range(pairs)]
    updates = Updates("q0", lambda: broker.url)
    for pair in traffic:
        pair.start()
    updates.start()
    recovering = 0
    try:
        for _ in range(kills):
            time.sleep(chance.uniform(0.05, 0.8))
            broker.kill()
            recovering += _restart(broker, chance)
        updates.stop()
        for pair in traffic:
            pair.stop_sending()
        drain(traffic)
        for pair in traffic:
            pair.stop_receiving()
        broker.kill()
        broker.start()
        updates.look()
    finally:
        broker.kill()
    return Result(
        kills=kills,
        killed_recovering=recovering,
        sent=sum(pair.sent for pair in traffic),
        accepted=sum(len(pair.accepted) for pair in traffic),
        arrived=sum(len({number for number, _ in pair.arrivals}) for pair in traffic),
        repeated=sum(pair.repeated for pair in traffic),
        updated=sum(updates.acknowledged.values()),
        looks=updates.looks,
        faults=(*(fault for pair in traffic for fault in pair.check()), *updates.faults),
    )


def _restart(broker: ChildBroker, chance: random.Random) -> int:
    """Start the broker again; one time in four it is killed first while it starts. Returns how often it was."""
    killed = 0
    while chance.random() < 0.25:
        broker.launch()
        time.sleep(chance.uniform(0.0, 0.6))
        broker.kill()
        killed += 1
    for attempt in range(3):
        try:
            broker.start()
            break
        except ToolError:
            if attempt == 2:
                raise
    return killed


def drain(traffic: list[Pair]) -> None:
    """Wait until all that was accepted has arrived, and nothing more for two seconds; or until it takes too long."""
    deadline = time.monotonic() + _DRAIN_SECONDS
    before, since = -1, time.monotonic()
    while time.monotonic() < deadline:
        if time.monotonic() - since >= _QUIET_SECONDS and not any(pair.missing() for pair in traffic):
            return
        arrived = sum(len(pair.arrivals) for pair in traffic)
        if arrived != before:
            before, since = arrived, time.monotonic()
        time.sleep(0.05)
