"""One kill of a broker after the other, at random moments and at planned ones, while endpoints talk to it.

The directory is verified after each kill, and the events of the whole log at the end. Some brokers are killed again
while they recover.
"""

import random
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from tests.crash.broker import CampaignBroker, StartFailed, verify_faults
from tests.crash.endpoints.endpoint import Endpoint
from tests.crash.event_laws import event_faults
from tests.crash.moments import Moments

__all__ = ["KillResult", "KillRounds"]

_RECOVERING_SHARE: Final = 0.2
"""The probability that a broker that starts is killed before it is ready."""
_PLANNED_SECONDS: Final = 1.5
"""Time for an endpoint to reach the point of a kill; after it the broker is killed anyhow."""
_END_SECONDS: Final = 60.0
"""Time without progress after which what is left is lost."""


@dataclass(slots=True)
class KillResult:
    """What a campaign came to."""

    kills: int = 0
    killed_recovering: int = 0
    points: Counter[str] = field(default_factory=Counter)
    """The kills at each planned point; those at a random moment have none."""
    figures: Counter[str] = field(default_factory=Counter)
    """What the endpoints did."""
    faults: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        """The figures, for people."""
        points = ", ".join(f"{count} when {point}" for point, count in sorted(self.points.items()))
        figures = ", ".join(f"{count} {name}" for name, count in self.figures.items())
        kills = f"{self.kills} kills ({points or 'none planned'}), {self.killed_recovering} more while recovering"
        return f"{kills}; {figures}"


class KillRounds:
    """A campaign; a subclass makes the endpoints, and knows when all is done."""

    POINTS: Sequence[str] = ()
    """The points of a kill that the endpoints reach."""
    LIFE_SECONDS = 0.4
    """The longest random time before a kill is planned, and again before a kill at no point."""
    DOWN_SECONDS = 0.0
    """The longest time between a kill and the next start."""
    CONFIG = ""
    """The configuration of the broker."""

    def __init__(self, directory: Path, *, seed: int, plant: str = "") -> None:
        """`plant` names a planted fault."""
        config = directory / "broker.toml"
        config.write_text(self.CONFIG)
        self.chance = random.Random(seed)
        self.broker = CampaignBroker(directory / "data", plant=plant, config=config)
        self.moments = Moments(self.broker.strike)
        self.result = KillResult()
        self.endpoints: list[Endpoint] = []

    def prepare(self) -> None:
        """Make queues and endpoints; the broker runs."""
        raise NotImplementedError

    def look(self) -> list[str]:
        """Return what is wrong after a start; the endpoints go on."""
        return []

    def stop_sending(self) -> None:
        """Begin nothing new."""
        raise NotImplementedError

    def progress(self) -> Any:
        """Return a value that differs while things go on; None when all is done."""
        raise NotImplementedError

    def finish(self) -> list[str]:
        """Return what is wrong at the end; the endpoints have stopped, and the broker runs."""
        raise NotImplementedError

    def run(self, kills: int) -> KillResult:
        """Kill so many times, let the endpoints end, and return what it came to."""
        result = self.result
        try:
            self.broker.restart()
            self.prepare()
            for endpoint in self.endpoints:
                endpoint.start()
            for _ in range(kills):
                self._kill()
            self.stop_sending()
            self._await_end()
            for endpoint in self.endpoints:
                endpoint.stop()
            result.faults += [fault for endpoint in self.endpoints for fault in endpoint.faults]
            result.faults += self.finish()
            self.broker.kill()
            self._verify()
            result.faults += event_faults(self.broker.directory)
        except StartFailed as failure:
            result.faults.append(str(failure))
        finally:
            self.broker.kill()
            for endpoint in self.endpoints:
                endpoint.is_running = False
        return result

    def _kill(self) -> None:
        point = self.chance.choice(("", *self.POINTS))
        # The clients must have come to work again.
        time.sleep(self.chance.uniform(0.05, self.LIFE_SECONDS))
        self.moments.plan(point)
        is_struck = self.moments.wait(_PLANNED_SECONDS if point else self.chance.uniform(0.0, self.LIFE_SECONDS))
        self.result.kills += 1
        if is_struck:
            self.result.points[point] += 1
        self.broker.kill()
        self._verify()
        while self.chance.random() < _RECOVERING_SHARE:
            self.broker.launch()
            time.sleep(self.chance.uniform(0.0, 0.6))
            self.broker.kill()
            self.result.killed_recovering += 1
            self._verify()
        time.sleep(self.chance.uniform(0.0, self.DOWN_SECONDS))
        self.broker.restart()
        self.result.faults += self.look()

    def _await_end(self) -> None:
        before, since = None, time.monotonic()
        while time.monotonic() < since + _END_SECONDS:
            progress = self.progress()
            if progress is None:
                return
            if progress != before:
                before, since = progress, time.monotonic()
            time.sleep(0.05)

    def _verify(self) -> None:
        faults = self.result.faults
        faults += [fault for fault in verify_faults(self.broker.directory) if fault not in faults]
