"""A campaign: the file system of a broker under load loses its power again and again, some times while it recovers.

The load is that of campaign.py. Segments are small, snapshots and compactions are frequent, so that each cut hits edits
of the manifest. After a cut the broker must end with exit code 74, and what it promised is there after the next mount.

Rule. A delivery-count may be too low after a loss of power (docs/durability.md), so this one law is not checked.
"""

import random
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Final, final

from ambermq.tools.terminal.exit_codes import ExitCode
from tests.crash.broker import CampaignBroker
from tests.crash.campaign import DRAIN_SECONDS, Result, Rounds
from tests.crash.campaigns.file_system import PoweredFileSystem

__all__ = ["PowerResult", "run_power_campaign"]

_CONFIG: Final = """\
[log]
segment_bytes_min = 262144
segment_bytes_max = 1048576

[engine]
snapshot_bytes = 4194304
snapshot_pause_s = 1

[compaction]
interval_s = 2
pause_s = 1
check_s = 1
keep_history_s = 0
spark = false
"""


@dataclass(frozen=True, slots=True)
class PowerResult:
    """What a campaign came to."""

    result: Result
    """As of a campaign of kills."""
    exit_codes: Counter[int]
    """How often a broker that served ended with each exit code after a cut."""


def run_power_campaign(
    directory: Path,
    kind: str,
    *,
    seed: int,
    cuts: int,
    pairs: int = 3,
    rate: int = 1000,
    plant: str = "",
    drain_seconds: float = DRAIN_SECONDS,
) -> PowerResult:
    """Run a campaign on a file system of this kind in a directory of its own, and return what it came to."""
    config = directory / "broker.toml"
    config.write_text(_CONFIG)
    with PoweredFileSystem(kind, directory) as powered:
        broker = CampaignBroker(
            powered.mount_point / "data", plant=plant, config=config, stderr_path=directory / "broker.stderr"
        )
        rounds = _PowerRounds(powered, broker, random.Random(seed), pairs=pairs, rate=rate)
        result = rounds.result(cuts, drain_seconds)
    return PowerResult(result, rounds.exit_codes)


@final
class _PowerRounds(Rounds):
    """One cut after the other."""

    counts_may_be_low = True

    def __init__(
        self, powered: PoweredFileSystem, broker: CampaignBroker, chance: random.Random, *, pairs: int, rate: int
    ) -> None:
        super().__init__(broker, chance, pairs=pairs, rate=rate)
        self.exit_codes = Counter[int]()
        """See PowerResult."""
        self._powered = powered
        self._is_starting = False

    def crash(self) -> None:
        """Cut the power, see how the broker ends, and mount again."""
        self._powered.cut()
        code = self.broker.kill() if self._is_starting else self.broker.wait()
        if not self._is_starting:
            self.exit_codes[code] += 1
            if code != ExitCode.LOG_FAILED:
                fault = f"exit: the broker ended with {code} after a cut: {self.broker.last_log_line()}"
                self.faults.append(fault)
        self._powered.restore()

    def crash_recovering(self) -> None:
        """Cut the power while the broker starts."""
        self._is_starting = True
        try:
            super().crash_recovering()
        finally:
            self._is_starting = False
