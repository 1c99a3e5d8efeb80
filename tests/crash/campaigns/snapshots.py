"""A campaign: SIGKILL at random moments while a snapshot is taken, exported and restored, beside a broker under load.

    take        the broker is killed; what was promised before is there, what was not is there whole or not at all
    export      the exporting process is killed; under the backup's name there is nothing, or all of it
    restore     the restoring process is killed; the directory holds nothing that opens, or all of it

After each kill the log verifies, and the same is done again and must succeed. Everything random comes from one seed.
"""

import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from ambermq.engine.loop.recovery import fold_log
from ambermq.engine.model.state import State
from ambermq.engine.snapshots.files import load_snapshot
from ambermq.log.config import LogConfig
from ambermq.log.errors import LogError
from ambermq.log.manifest.manifest import load
from ambermq.log.read.log_reader import open_reader
from ambermq.log.recovery.recovery import Recovery
from ambermq.log.storage.disk import DiskStorage
from ambermq.tools.backup.verify import verify_backup
from tests.crash.broker import CampaignBroker, StartFailed, verify_faults
from tests.crash.campaign import drain
from tests.crash.campaigns.pile import pile_faults, pile_up
from tests.crash.pair import Pair

__all__ = ["Result", "run_snapshot_campaign"]

_KINDS: Final = ("take", "export", "restore")
_AMBERMQ: Final = [sys.executable, "-m", "ambermq"]
_COMMAND_SECONDS: Final = 600.0
"""A busy machine is slow, which is no fault."""
_UNPACED: Final = {**os.environ, "AMBERMQ_READ_RATE": "0"}
"""What is tried here is what a kill leaves behind, not how long a busy broker makes others wait."""


@dataclass(slots=True)
class Result:
    """What a campaign came to."""

    kills: int = 0
    cut_short: int = 0
    """Kills that hit before the work was done."""
    accepted: int = 0
    faults: list[str] = field(default_factory=list)
    """What went wrong; empty when every promise was kept."""


def run_snapshot_campaign(directory: Path, *, seed: int, kills: int) -> Result:
    """Run a campaign of so many kills, of the three kinds in turn, in a directory of its own."""
    chance, result = random.Random(seed), Result()
    broker = CampaignBroker(directory / "data")
    broker.restart()
    traffic = Pair("traffic", lambda: broker.url, rate=500)
    try:
        pile = pile_up(broker.url, chance)
        traffic.start()
        rounds = _Rounds(directory, broker, chance, result)
        rounds.prepare()
        for number in range(kills):
            getattr(rounds, _KINDS[number % len(_KINDS)])(number)
        traffic.stop_sending()
        drain([traffic])
        traffic.stop_receiving()
        rounds.take_one("last")
        result.faults += pile_faults(broker.url, pile)
        broker.stop()
        rounds.check_log(broker.directory)
    except StartFailed as failure:
        result.faults.append(str(failure))
    finally:
        broker.kill()
        traffic.stop_sending()
        traffic.stop_receiving()
    result.accepted = len(traffic.accepted)
    result.faults += traffic.check()
    return result


class _Rounds:
    """One method a kind of kill."""

    def __init__(self, directory: Path, broker: CampaignBroker, chance: random.Random, result: Result) -> None:
        self._directory = directory
        self._backup = directory / "whole.backup"
        self._broker = broker
        self._chance = chance
        self._result = result
        self._promised: set[str] = set()
        self._seconds = dict.fromkeys(_KINDS, 0.6)
        """Duration of each kind without a kill."""

    def prepare(self) -> None:
        """Create a snapshot and a backup without a kill."""
        self.take_one("undisturbed")
        self._finished("export", self._export(self._backup))

    def take_one(self, name: str) -> None:
        """Create a snapshot without a kill."""
        began = time.monotonic()
        _finish(*self._create(name))
        self._seconds["take"] = time.monotonic() - began
        self._promised.add(name)

    def take(self, number: int) -> None:
        """Kill the broker while it takes a snapshot."""
        name = f"taken-{number}"
        child = _begin(*self._create(name))
        self._kill_in("take", self._broker.kill)
        if child.wait(_COMMAND_SECONDS) == 0:
            self._promised.add(name)
        else:
            self._result.cut_short += 1
        self.check_log(self._broker.directory)
        self._broker.restart()
        self._check_snapshots()

    def export(self, number: int) -> None:
        """Kill the process that writes a backup."""
        path = self._directory / f"backup-{number}"
        command = self._export(path)
        self._killed("export", command)
        if path.exists():
            verify_backup(str(path))
        else:
            self._finished("export", command)
        verify_backup(str(path))
        if path.with_name(f"{path.name}.partial").exists():
            self._result.faults.append(f"snapshot: {path}.partial was left after a later export")
        path.unlink()

    def restore(self, number: int) -> None:
        """Kill the process that makes a log of a backup."""
        target = self._directory / f"restored-{number}"
        command = ("restore", str(self._backup), "--data", str(target))
        self._killed("restore", command)
        if not (target / "MANIFEST").exists():
            self._check_opens_not(target)
            self._finished("restore", command)
        self.check_log(target)
        if _state_at_rest(target) != self._state_of("undisturbed"):
            self._result.faults.append(f"snapshot: restore {number}: the state is another")
        shutil.rmtree(target)

    def check_log(self, directory: Path) -> None:
        """Note what verification of a log finds."""
        self._result.faults += verify_faults(directory)

    def _export(self, path: Path) -> tuple[str, ...]:
        # Slowly: else it is over in no time, and no kill would hit it.
        return ("export", "undisturbed", str(path), "--disk-rate", "8", "--data", str(self._broker.directory))

    def _create(self, name: str) -> tuple[str, ...]:
        return ("snapshot", "create", "--name", name, "--wait", "--url", self._broker.url)

    def _killed(self, kind: str, command: tuple[str, ...]) -> None:
        """Begin a command and kill it at some moment."""
        child = _begin("snapshot", *command)
        self._kill_in(kind, child.kill)
        if child.wait(_COMMAND_SECONDS) != 0:
            self._result.cut_short += 1

    def _kill_in(self, kind: str, kill: Callable[[], object]) -> None:
        # The interpreter takes a good part of the time to begin, and nothing happens until it has.
        time.sleep(self._seconds[kind] * self._chance.uniform(0.3, 1.05))
        kill()
        self._result.kills += 1

    def _finished(self, kind: str, command: tuple[str, ...]) -> None:
        began = time.monotonic()
        _finish("snapshot", *command)
        self._seconds[kind] = time.monotonic() - began

    def _check_snapshots(self) -> None:
        """All that were promised are there, and whatever is there is whole."""
        directory = str(self._broker.directory)
        with open_reader(directory) as reader:
            manifest = reader.manifest
            for snapshot in manifest.snapshots:
                load_snapshot(DiskStorage(), directory, manifest, snapshot)
            missing = self._promised - {snapshot.name for snapshot in manifest.snapshots}
        if missing:
            self._result.faults.append(f"snapshot: snapshots that were promised are gone: {sorted(missing)}")

    def _check_opens_not(self, target: Path) -> None:
        """A directory that is half restored must not open as a log."""
        if target.exists() and any(path.name != "lock" for path in target.iterdir()):
            try:
                Recovery.open(DiskStorage(), str(target), LogConfig(), 1).close()
            except LogError:
                return
            self._result.faults.append(f"snapshot: {target} opens, though its restore was cut short")

    def _state_of(self, name: str) -> State:
        directory = str(self._broker.directory)
        with open_reader(directory) as reader:
            (snapshot,) = [one for one in reader.manifest.snapshots if one.name == name]
            return load_snapshot(DiskStorage(), directory, reader.manifest, snapshot)


def _state_at_rest(directory: Path) -> State:
    assert load(DiskStorage(), str(directory)) is not None
    recovery = Recovery.open(DiskStorage(), str(directory), LogConfig(), 1)
    try:
        return fold_log(recovery)
    finally:
        recovery.close()


def _begin(*arguments: str) -> "subprocess.Popen[bytes]":
    return subprocess.Popen([*_AMBERMQ, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=_UNPACED)


def _finish(*arguments: str) -> None:
    """Run a command of `ambermq`, which must succeed."""
    done = subprocess.run(
        [*_AMBERMQ, *arguments], capture_output=True, text=True, timeout=_COMMAND_SECONDS, check=False, env=_UNPACED
    )
    if done.returncode:
        raise AssertionError(f"{' '.join(arguments[:3])} ended with {done.returncode}: {done.stderr}")
