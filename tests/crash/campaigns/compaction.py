"""A campaign: SIGKILL while compactions by Spark are under way, beside a broker under load.

    worker     a Python process of Spark's: the task is tried again, or the compaction ends with a message
    broker     the one that is asked to commit: the log is as it was, or compacted
    java       Spark's Java process: the driver tells it
    driver     the process that the command is: its Java process ends too

Rule 1. The driver says which stage it enters, and a kill waits for its stage: each kind meets each stage in turn.
Rule 2. A compaction that has ended before its kill counts for nothing: another one begins.
Rule 3. After each kill the directory verifies, the next compaction succeeds, and what the dead one left is gone.

Everything random comes from one seed.
"""

import os
import random
import select
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import psutil  # type: ignore[import-untyped]  # its types are a package of their own

from ambermq.tools.compaction.local_runner import LocalRunner
from tests.crash.broker import CampaignBroker, StartFailed, verify_faults
from tests.crash.campaign import drain
from tests.crash.campaigns.compaction_child import compact_once
from tests.crash.campaigns.pile import pile_faults, pile_up
from tests.crash.pair import Pair

__all__ = ["KINDS", "Result", "rounds_of", "run_compaction_campaign"]

KINDS: Final[Mapping[str, tuple[str, ...]]] = {
    "worker": ("count", "rewrite"),
    "broker": ("snapshots", "count", "rewrite", "commit"),
    "java": ("snapshots", "count", "rewrite", "commit"),
    "driver": ("snapshots", "count", "rewrite", "commit"),
}
"""The processes, each with the stages in which it is killed. A worker works in two of them."""
_START_SECONDS: Final = 600.0
_ANSWER_SECONDS: Final = 600.0
_TRIES_MAX: Final = 20
"""Compactions that may end before one kill."""


def rounds_of(kills: int) -> list[tuple[str, str]]:
    """Return the kind and the stage of so many kills: each kind in turn, and each of its stages in turn."""
    kinds = list(KINDS)
    pairs = ((kinds[number % len(kinds)], number // len(kinds)) for number in range(kills))
    return [(kind, KINDS[kind][turn % len(KINDS[kind])]) for kind, turn in pairs]


@dataclass(slots=True)
class Result:
    """What a campaign came to."""

    kills: int = 0
    """Kills of compactions that were under way."""
    stages: Counter[str] = field(default_factory=Counter)
    """The kills by the stage that the compaction was in."""
    ended_before: int = 0
    """Compactions that ended before a kill; they are not among the kills."""
    cut_short: int = 0
    """Compactions that did not come to their end."""
    accepted: int = 0
    faults: list[str] = field(default_factory=list)
    """What went wrong; empty when every promise was kept."""


class _Driver:
    """The process that compacts; started again where it was killed."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._process: subprocess.Popen[bytes] | None = None
        self._java: psutil.Process | None = None
        self._read = b""
        self._has_ended = False
        self.stage = ""
        """The stage of the compaction."""
        self.answer: str | None = None
        """The result of the compaction."""

    def begin(self) -> None:
        """Begin a compaction."""
        if self._process is None:
            self._start()
        self.stage, self.answer = "", None
        assert self._process is not None
        assert self._process.stdin is not None
        self._process.stdin.write(b"\n")
        self._process.stdin.flush()

    def wait_for(self, stage: str) -> None:
        """Wait until the compaction is in a stage, or has ended."""
        while self.stage != stage and self.is_under_way(_ANSWER_SECONDS):
            pass

    def wait(self) -> str | None:
        """Wait for the end; return "" for success, or the error; None where the process ends without an answer."""
        while self.is_under_way(_ANSWER_SECONDS):
            pass
        return self.answer

    def is_under_way(self, seconds: float = 0.0) -> bool:
        """Read what the driver says, at most for so many seconds; return whether it still compacts."""
        line = self._line(seconds) if self.answer is None and not self._has_ended else None
        if line is not None:
            word, _, rest = line.partition(" ")
            if word == "done":
                self.answer = rest.strip()
            elif word == "stage":
                self.stage = rest.strip()
        return self.answer is None and not self._has_ended

    def kill(self) -> None:
        """Send SIGKILL to the process itself."""
        assert self._process is not None
        self._process.kill()

    def kill_java(self) -> None:
        """Send SIGKILL to its Java process."""
        assert self._java is not None
        self._java.kill()

    def kill_worker(self, chance: random.Random) -> bool:
        """Send SIGKILL to one of the Python processes that Spark has started; return whether there was one."""
        assert self._java is not None
        workers = [one for one in self._java.children(recursive=True) if _is_worker(one)]
        if not workers:
            return False
        with suppress(psutil.NoSuchProcess):
            chance.choice(workers).kill()
        return True

    def end(self) -> str:
        """End it, and wait for its Java process; returns what is wrong."""
        process, java, self._process, self._java = self._process, self._java, None, None
        if process is None or java is None:
            return ""
        with process:
            process.kill()
        _, alive = psutil.wait_procs([java], _START_SECONDS)
        for one in alive:
            one.kill()
        return "the Java process outlives its driver" if alive else ""

    def _start(self) -> None:
        command = [sys.executable, "-m", "tests.crash.campaigns.compaction_child", str(self._directory)]
        # A driver that is killed leaves its session's files: they lie where the campaign's go.
        environment = {**os.environ, "TMPDIR": str(self._directory.parent)}
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)
        self._read, self._has_ended = b"", False
        words = (self._line(_START_SECONDS) or "").split()
        assert words[:1] == ["ready"], words
        self._java = psutil.Process(int(words[1]))

    def _line(self, seconds: float) -> str | None:
        """Return the next line; None if none comes in time, or the process has ended."""
        assert self._process is not None
        assert self._process.stdout is not None
        descriptor = self._process.stdout.fileno()
        deadline = time.monotonic() + seconds
        while b"\n" not in self._read:
            if not select.select([descriptor], [], [], max(0.0, deadline - time.monotonic()))[0]:
                assert not seconds, f"the driver says nothing in {seconds:.0f} s"
                return None
            received = os.read(descriptor, 65536)
            if not received:
                self._has_ended = True
                return None
            self._read += received
        line, _, self._read = self._read.partition(b"\n")
        return line.decode()


def _is_worker(process: psutil.Process) -> bool:
    try:
        return "pyspark.daemon" in process.cmdline()
    except psutil.Error:  # it has just ended
        return False


def run_compaction_campaign(directory: Path, *, seed: int, rounds: Sequence[tuple[str, str]]) -> Result:
    """Kill one process in each of the `rounds`, which are kinds with stages; return what it came to."""
    chance, result = random.Random(seed), Result()
    broker = CampaignBroker(directory / "data")
    broker.restart()
    traffic, driver = Pair("traffic", lambda: broker.url, rate=500), _Driver(broker.directory)
    try:
        pile = pile_up(broker.url, chance)
        traffic.start()
        killer = _Rounds(broker, driver, chance, result)
        killer.undisturbed()
        for kind, stage in rounds:
            killer.kill(kind, stage)
        traffic.stop_sending()
        drain([traffic])
        traffic.stop_receiving()
        result.faults += pile_faults(broker.url, pile)
        broker.stop()
        killer.check_log()
    except StartFailed as failure:
        result.faults.append(str(failure))
    finally:
        driver.end()
        broker.kill()
        traffic.stop_sending()
        traffic.stop_receiving()
    result.accepted = len(traffic.accepted)
    result.faults += traffic.check()
    return result


class _Rounds:
    """One kill after the other."""

    def __init__(self, broker: CampaignBroker, driver: _Driver, chance: random.Random, result: Result) -> None:
        self._broker = broker
        self._driver = driver
        self._chance = chance
        self._result = result
        self._directory = broker.directory
        self._seconds = dict[str, float]()
        """Duration of each stage without a kill."""

    def undisturbed(self) -> None:
        """Compact twice without a kill, for the first one warms Spark up; measure the stages."""
        for _ in range(2):
            self._driver.begin()
            moments = dict[str, float]()
            while self._driver.is_under_way(_ANSWER_SECONDS):
                moments.setdefault(self._driver.stage, time.monotonic())
            ends = [*list(moments.values())[1:], time.monotonic()]
            self._seconds = {stage: end - moment for (stage, moment), end in zip(moments.items(), ends, strict=True)}
            self._expect_success(self._driver.answer)

    def kill(self, kind: str, stage: str) -> None:
        """Kill something while a compaction is in a stage, and see what is left."""
        for _ in range(_TRIES_MAX):
            self._driver.begin()
            self._driver.wait_for(stage)
            time.sleep(self._seconds.get(stage, 0.0) * self._chance.uniform(0, 0.8))
            if self._driver.is_under_way() and self._kill_process(kind):
                break
            self._result.ended_before += 1
            self._expect_success(self._driver.wait())
        else:
            self._note(f"{_TRIES_MAX} compactions ended before a kill of {kind} in {stage}")
            return
        self._result.kills += 1
        self._result.stages[self._driver.stage] += 1
        self._check_killed(kind)

    def _kill_process(self, kind: str) -> bool:
        """Send the SIGKILL; return whether there was such a process."""
        match kind:
            case "worker":
                return self._driver.kill_worker(self._chance)
            case "broker":
                self._broker.kill()
            case "java":
                self._driver.kill_java()
            case _:
                self._driver.kill()
        return True

    def _check_killed(self, kind: str) -> None:
        answer = self._driver.wait()
        self._result.cut_short += answer != ""
        if kind in {"java", "driver"}:
            self._note(self._driver.end())
        elif answer is None:
            self._note("the driver died of what was killed beside it")
        if kind == "broker":
            self.check_log()
            self._broker.restart()
        self._check_next()

    def check_log(self) -> None:
        """Note what verification finds."""
        for fault in verify_faults(self._directory):
            self._note(fault)

    def _check_next(self) -> None:
        """The directory verifies; the next compaction succeeds and sweeps."""
        self.check_log()
        self._expect_success(compact_once(str(self._directory), LocalRunner()))
        left = sorted(path.name for path in (self._directory / "jobs").iterdir())
        if left != ["lock"]:
            self._note(f"next: the next compaction left {left}")

    def _expect_success(self, answer: str | None) -> None:
        if answer != "":
            self._note(f"next: a compaction without a kill failed: {answer}")

    def _note(self, fault: str) -> None:
        if fault:
            self._result.faults.append(f"{fault} (kill {self._result.kills})")
