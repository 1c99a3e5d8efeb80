"""A campaign: SIGKILL at random moments of compactions by Spark, beside a broker under load.

    worker     a Python process of Spark's: the task is tried again, or the compaction ends with a message
    broker     the one that is asked to commit: the log is as it was, or compacted
    java       Spark's Java process: the driver tells it
    driver     the process that the command is: its Java process ends too

Every other kill waits until the job asks for its commit. After each the directory verifies, the next compaction
succeeds, and what the dead one left is gone. Everything random comes from one seed.
"""

import os
import random
import select
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import psutil  # type: ignore[import-untyped]  # its types are a package of their own

from ambermq.log.buffer import Buffer
from ambermq.log.recovery.verify import verify
from ambermq.protocol.amqp10.message.message import Data, Message, decode_message
from ambermq.protocol.amqp10.performatives.classes import Header
from ambermq.tools.broker.child_broker import ChildBroker
from ambermq.tools.client.broker_url import BrokerUrl
from ambermq.tools.client.link_client import LinkClient
from ambermq.tools.compaction.local_runner import LocalRunner
from ambermq.tools.messages.publisher import Publisher
from ambermq.tools.messages.subscriber import Subscriber
from tests.crash.campaign import drain
from tests.crash.compaction_child import compact_once
from tests.crash.pair import Pair

__all__ = ["KINDS", "Result", "run_compaction_campaign"]

KINDS: Final = ("worker", "broker", "java", "driver")
_PILE_COUNT: Final = 4000
_BODY_BYTES: Final = 1024
_START_SECONDS: Final = 600.0
_ANSWER_SECONDS: Final = 600.0
_COMMIT_SECONDS: Final = 0.03


@dataclass(slots=True)
class Result:
    """What a campaign came to."""

    kills: int = 0
    cut_short: int = 0
    """Compactions that did not come to their end."""
    at_commit: int = 0
    """Kills after a job had asked for its commit."""
    accepted: int = 0
    faults: list[str] = field(default_factory=list)
    """What went wrong; empty when every promise was kept."""


class _Driver:
    """The process that compacts; started again where it was killed."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._process: subprocess.Popen[bytes] | None = None
        self._java: psutil.Process | None = None

    def begin(self) -> None:
        """Begin a compaction."""
        if self._process is None:
            self._start()
        assert self._process is not None
        assert self._process.stdin is not None
        self._process.stdin.write(b"\n")
        self._process.stdin.flush()

    def answer(self) -> str | None:
        """Return what came of it: nothing, or the error; None where the process ends without an answer."""
        line = self._line(_ANSWER_SECONDS)
        return line[:-1] if line else None

    def has_answered(self) -> bool:
        """Whether there is an answer by now."""
        return self._is_readable(0)

    def kill(self) -> None:
        """Send SIGKILL to the process itself."""
        assert self._process is not None
        self._process.kill()

    def kill_java(self) -> None:
        """Send SIGKILL to its Java process."""
        assert self._java is not None
        self._java.kill()

    def kill_worker(self, chance: random.Random) -> None:
        """Send SIGKILL to one of the Python processes that Spark has started, the one that starts them included."""
        assert self._java is not None
        workers = [one for one in self._java.children(recursive=True) if _is_worker(one)]
        if workers:
            with suppress(psutil.NoSuchProcess):
                chance.choice(workers).kill()

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
        command = [sys.executable, "-m", "tests.crash.compaction_child", str(self._directory)]
        # A driver that is killed leaves its session's files: they lie where the campaign's go.
        environment = {**os.environ, "TMPDIR": str(self._directory.parent)}
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)
        words = self._line(_START_SECONDS).split()
        assert words[:1] == ["ready"], words
        self._java = psutil.Process(int(words[1]))

    def _line(self, seconds: float) -> str:
        assert self._is_readable(seconds), f"no answer in {seconds:.0f} s"
        assert self._process is not None
        assert self._process.stdout is not None
        return self._process.stdout.readline().decode()

    def _is_readable(self, seconds: float) -> bool:
        assert self._process is not None
        assert self._process.stdout is not None
        return bool(select.select([self._process.stdout.fileno()], [], [], seconds)[0])


def _is_worker(process: psutil.Process) -> bool:
    try:
        return "pyspark.daemon" in process.cmdline()
    except psutil.Error:  # it has just ended
        return False


def run_compaction_campaign(directory: Path, *, seed: int, kinds: Sequence[str]) -> Result:
    """Kill one process of each of the `kinds` in turn, in a directory of its own; return what came of it."""
    chance, result = random.Random(seed), Result()
    broker = ChildBroker(directory / "data")
    broker.start()
    traffic, driver = Pair("traffic", lambda: broker.url, rate=500), _Driver(broker.directory)
    try:
        pile = _pile_up(broker.url, chance)
        traffic.start()
        rounds = _Rounds(broker, driver, chance, result)
        rounds.undisturbed()
        for kind in kinds:
            rounds.kill(kind)
        traffic.stop_sending()
        drain([traffic])
        traffic.stop_receiving()
        rounds.check_pile(pile)
        broker.stop()
        rounds.check_log()
    finally:
        driver.end()
        broker.kill()
    result.accepted = len(traffic.accepted)
    result.faults += traffic.check()
    return result


class _Rounds:
    """One kill after the other."""

    def __init__(self, broker: ChildBroker, driver: _Driver, chance: random.Random, result: Result) -> None:
        self._broker = broker
        self._driver = driver
        self._chance = chance
        self._result = result
        self._directory = broker.directory
        self._seconds = 1.0
        """Duration of a compaction without a kill."""

    def undisturbed(self) -> None:
        """Compact twice, for the first one warms Spark up."""
        for _ in range(2):
            began = time.monotonic()
            self._driver.begin()
            self._expect_success(self._driver.answer())
            self._seconds = time.monotonic() - began

    def kill(self, kind: str) -> None:
        """Begin a compaction, kill something, and see what is left."""
        self._driver.begin()
        self._wait()
        self._result.at_commit += self._is_committing()
        match kind:
            case "worker":
                self._driver.kill_worker(self._chance)
            case "broker":
                self._broker.kill()
            case "java":
                self._driver.kill_java()
            case _:
                self._driver.kill()
        self._result.kills += 1
        answer = self._driver.answer()
        self._result.cut_short += answer != ""
        if kind in {"java", "driver"}:
            self._note(self._driver.end())
        elif answer is None:
            self._note("the driver died of what was killed beside it")
        if kind == "broker":
            self._broker.start()
        self._check_next()

    def check_log(self) -> None:
        """Note what verification finds."""
        report = verify(str(self._directory))
        if report.damage is not None or report.unknown_files:
            self._note(f"{report.damage}, unknown files {report.unknown_files}")

    def check_pile(self, sent: frozenset[bytes]) -> None:
        """Check that every message without a receiver is there, byte for byte."""
        with LinkClient.connect(BrokerUrl.parse(self._broker.url)) as client:
            subscriber = Subscriber(client, client.attach_receiver("pile"))
            arrived = [_body_of(payload) for payload in subscriber.payloads(idle_seconds=1.0)]
            subscriber.finish()
        lost = sent.difference(arrived)
        if lost or len(arrived) != len(sent):
            self._note(f"of {len(sent)} messages that waited {len(lost)} are lost, {len(arrived)} came")

    def _wait(self) -> None:
        """Wait for the moment of a kill: any, or one after the commit was asked for."""
        if self._chance.random() < 0.5:
            time.sleep(self._seconds * self._chance.uniform(0, 1.1))
            return
        while not self._driver.has_answered():
            if self._is_committing():
                time.sleep(self._chance.uniform(0, _COMMIT_SECONDS))
                return
            time.sleep(0.001)

    def _is_committing(self) -> bool:
        return any(self._directory.glob("jobs/*/TABLE"))

    def _check_next(self) -> None:
        """The directory verifies; the next compaction succeeds and sweeps."""
        self.check_log()
        self._expect_success(compact_once(str(self._directory), LocalRunner()))
        left = sorted(path.name for path in (self._directory / "jobs").iterdir())
        if left != ["lock"]:
            self._note(f"the next compaction left {left}")

    def _expect_success(self, answer: str | None) -> None:
        if answer != "":
            self._note(f"a compaction without a kill failed: {answer}")

    def _note(self, fault: str) -> None:
        if fault:
            self._result.faults.append(f"kill {self._result.kills}: {fault}")


def _pile_up(url: str, chance: random.Random) -> frozenset[bytes]:
    """Send messages that stay; return their bodies."""
    bodies = [chance.randbytes(_BODY_BYTES) for _ in range(_PILE_COUNT)]
    with LinkClient.connect(BrokerUrl.parse(url)) as client:
        publisher = Publisher(client, client.attach_sender("pile"), on_outcome=lambda *_: None, window=500)
        for number, body in enumerate(bodies):
            publisher.offer(Message(header=Header(durable=True), body=(Data(body),)).encode(), number)
        publisher.finish()
    return frozenset(bodies)


def _body_of(payload: Buffer) -> bytes:
    (section,) = decode_message(payload).body
    assert isinstance(section, Data)
    return bytes(section.value)
