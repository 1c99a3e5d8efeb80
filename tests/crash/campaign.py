"""A campaign: a broker is killed with SIGKILL again and again under load, some times while it recovers.

The load is messages through queues, updates of one of these queues and of a muxer, and a backlog without a receiver.
The directory is verified after each kill, before the next start.

Everything random comes from one seed, so a failed campaign can be tried again; the moments of the machine cannot.
"""

import random
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.crash.broker import CampaignBroker, StartFailed, verify_faults
from tests.crash.pair import Pair
from tests.crash.queue_campaigns.updates import Updates

__all__ = ["DRAIN_SECONDS", "Result", "Rounds", "drain", "run_campaign"]

DRAIN_SECONDS: Final = 120.0
"""Time without an arrival after which the rest is lost."""
_RECOVERING_SHARE: Final = 0.25
"""The probability that a broker that starts is ended before it is ready."""
_QUIET_SECONDS: Final = 2.0


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
    verified: int
    """How often the directory was verified."""
    start_seconds_max: float
    """The duration of the longest start."""
    faults: tuple[str, ...]
    """What went wrong; empty when every promise was kept."""

    @property
    def figures(self) -> str:
        """The figures, for people."""
        return (
            f"{self.sent} sent, {self.accepted} accepted, {self.arrived} arrived, {self.repeated} repeated; "
            f"{self.updated} updates acknowledged, looked at {self.looks} times after a crash; "
            f"log verified {self.verified} times, longest start {self.start_seconds_max:.1f} s"
        )


def run_campaign(
    directory: Path,
    *,
    seed: int,
    kills: int,
    pairs: int = 3,
    rate: int = 2000,
    plant: str = "",
    drain_seconds: float = DRAIN_SECONDS,
) -> Result:
    """Run a campaign in a directory of its own and return what it came to; `plant` names a planted fault."""
    broker = CampaignBroker(directory / "data", plant=plant)
    return Rounds(broker, random.Random(seed), pairs=pairs, rate=rate).result(kills, drain_seconds)


class Rounds:
    """One kill after the other; a subclass may crash otherwise."""

    counts_may_be_low = False
    """Whether a message may arrive again with delivery-count 0."""

    def __init__(self, broker: CampaignBroker, chance: random.Random, *, pairs: int, rate: int) -> None:
        self.broker = broker
        self.chance = chance
        self.faults: list[str] = []
        self._recovering = self._verified = 0
        names = [f"q{number}" for number in range(pairs)]
        self._traffic = [self._pair(name, rate, is_backlog=False) for name in names]
        self._traffic.append(self._pair("backlog", rate // 10, is_backlog=True))
        self._updates = Updates("q0", lambda: broker.url)

    def result(self, kills: int, drain_seconds: float) -> Result:
        """Kill so many times, receive what is left, and return what it came to."""
        try:
            self._run(kills, drain_seconds)
        except StartFailed as failure:
            self.faults.append(str(failure))
        finally:
            self.broker.kill()
            self._end()
        return self._result(kills)

    def crash(self) -> None:
        """End the broker under load."""
        self.broker.kill()

    def crash_recovering(self) -> None:
        """End the broker while it starts."""
        self.broker.launch()
        time.sleep(self.chance.uniform(0.0, 0.6))
        self.crash()

    def _pair(self, name: str, rate: int, *, is_backlog: bool) -> Pair:
        return Pair(
            name,
            lambda: self.broker.url,
            rate=rate,
            is_backlog=is_backlog,
            counts_may_be_low=self.counts_may_be_low,
        )

    def _run(self, kills: int, drain_seconds: float) -> None:
        self.broker.restart()
        for pair in self._traffic:
            pair.start()
        self._updates.start()
        for _ in range(kills):
            time.sleep(self.chance.uniform(0.05, 0.8))
            self.crash()
            self._verify()
            while self.chance.random() < _RECOVERING_SHARE:
                self.crash_recovering()
                self._verify()
                self._recovering += 1
            self.broker.restart()
        self._updates.stop()
        for pair in self._traffic:
            pair.stop_sending()
            pair.start_receiving()
        drain(self._traffic, drain_seconds)
        for pair in self._traffic:
            pair.stop_receiving()
        self.crash()
        self._verify()
        self.broker.restart()
        self._updates.look()

    def _verify(self) -> None:
        self._verified += 1
        self.faults += [fault for fault in verify_faults(self.broker.directory) if fault not in self.faults]

    def _end(self) -> None:
        """End all threads."""
        self._updates.stop()
        for pair in self._traffic:
            pair.stop_sending()
            pair.stop_receiving()

    def _result(self, kills: int) -> Result:
        traffic, updates = self._traffic, self._updates
        return Result(
            kills=kills,
            killed_recovering=self._recovering,
            sent=sum(pair.sent for pair in traffic),
            accepted=sum(len(pair.accepted) for pair in traffic),
            arrived=sum(len({number for number, _ in pair.arrivals}) for pair in traffic),
            repeated=sum(pair.repeated for pair in traffic),
            updated=sum(updates.acknowledged.values()),
            looks=updates.looks,
            verified=self._verified,
            start_seconds_max=self.broker.start_seconds_max,
            faults=(*self.faults, *(fault for pair in traffic for fault in pair.check()), *updates.faults),
        )


def drain(traffic: list[Pair], seconds: float = DRAIN_SECONDS) -> None:
    """Wait until all that was accepted has arrived, and nothing more for two seconds.

    What has not arrived is lost if nothing at all arrives for `seconds`: a busy machine is slow, but it goes on.
    """
    before, since = -1, time.monotonic()
    while time.monotonic() < since + seconds:
        if time.monotonic() - since >= _QUIET_SECONDS and not any(pair.missing() for pair in traffic):
            return
        arrived = sum(len(pair.arrivals) for pair in traffic)
        if arrived != before:
            before, since = arrived, time.monotonic()
        time.sleep(0.05)
