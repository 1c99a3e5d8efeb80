"""A soak: the load, the faults, and the record.

    first fifth     the broker is killed with SIGKILL a few times, and the log is verified after each kill
    the rest        one life, which is judged; its process is stopped for two seconds twice, as on a machine that hangs

The load is pairs of senders and receivers with bodies that are compared, updates, the rounds of work.py, faulty peers,
and compactions that the broker starts. A process measures the latency of one durable message at a time. Latencies of
messages that were on their way while the process was stopped are left out.
"""

import random
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, final

import psutil  # type: ignore[import-untyped]  # its types are a package of their own

from ambermq.protocol.amqp10.message.message import Data, Message
from ambermq.protocol.amqp10.performatives.classes import Header
from ambermq.tools.client.broker_url import BrokerUrl
from ambermq.tools.client.link_client import LinkClient
from ambermq.tools.messages.publisher import Publisher
from ambermq.tools.terminal.errors import ToolError
from tests.crash.broker import CampaignBroker, StartFailed, verify_faults
from tests.crash.campaign import drain
from tests.crash.pair import Pair
from tests.crash.queue_campaigns.updates import Updates
from tests.soak.faults import FAULTS
from tests.soak.verdict import Finding, Latency, Sample, judge
from tests.soak.work import WORK

__all__ = ["Record", "run_soak"]

_CONFIG: Final = """\
[compaction]
interval_s = 60
pause_s = 30
check_s = 5
keep_history_s = 0
spark = false
"""
_KILLS: Final = 3
_LIFE_SHARE: Final = 0.2
"""The share of the time before the life that is judged."""
_STOPS: Final = (0.45, 0.7)
_STOP_SECONDS: Final = 2.0
_SETTLED_SECONDS: Final = 1.0
"""The time that a broker may take for what has piled up."""
_HELD_COUNT: Final = 3000
_SAMPLE_SECONDS: Final = 1.0
_RETRY_SECONDS: Final = 0.05
_RATE: Final = 150


@dataclass(slots=True)
class Record:
    """What a soak came to."""

    samples: list[Sample] = field(default_factory=list)
    """One a second."""
    latencies: list[Latency] = field(default_factory=list)
    """Of the probe."""
    rounds: Counter[str] = field(default_factory=Counter)
    """The rounds of each kind of work and fault."""
    interrupted: Counter[str] = field(default_factory=Counter)
    """The rounds that a kill interrupted, and those of faulty peers whose connection the broker ended first."""
    life_s: float = 0.0
    """The begin of the life that is judged, in seconds since the begin of the soak."""
    accepted: int = 0
    """Messages of the pairs that were accepted."""
    findings: list[Finding] = field(default_factory=list)
    """The verdict."""
    faults: list[str] = field(default_factory=list)
    """What broke a promise; empty when every promise was kept."""


def run_soak(directory: Path, *, seed: int, minutes: float) -> Record:
    """Run a soak in a directory of its own and return its record."""
    config = directory / "broker.toml"
    config.write_text(_CONFIG)
    broker = CampaignBroker(directory / "data", config=config)
    soak = _Soak(broker, seed, 60 * minutes)
    try:
        soak.run()
    except StartFailed as failure:
        soak.record.faults.append(str(failure))
    finally:
        soak.end()
        broker.kill()
    soak.judge()
    return soak.record


@final
class _Soak:
    """The threads of one soak."""

    def __init__(self, broker: CampaignBroker, seed: int, seconds: float) -> None:
        self.record = Record()
        self._broker = broker
        self._chance = random.Random(seed)
        self._seconds = seconds
        self._began = time.monotonic()
        self._is_running = True
        self._is_alive = False
        """Whether the broker runs, and is expected to run on."""
        self._stops: list[tuple[float, float]] = []
        self._pairs = [Pair(f"pair-{number}", lambda: broker.url, rate=_RATE) for number in range(2)]
        self._updates = Updates("pair-0", lambda: broker.url)
        kinds = {**WORK, **FAULTS}
        rounds = [self._repeated(name, work, pause) for name, (work, pause) in kinds.items()]
        self._threads = [threading.Thread(target=run, daemon=True) for run in (*rounds, self._probe, self._sample)]

    def run(self) -> None:
        """Run for the whole time, and receive what is left. Raises StartFailed."""
        self._broker.restart()
        self._is_alive = True
        _fill(self._broker.url)
        for pair in self._pairs:
            pair.start()
        self._updates.start()
        for thread in self._threads:
            thread.start()
        for number in range(_KILLS):
            self._sleep_until(_LIFE_SHARE * (number + 1) / (_KILLS + 1))
            self._kill()
        self._sleep_until(_LIFE_SHARE)
        self.record.life_s = self._now_s()
        for share in _STOPS:
            self._sleep_until(share)
            self._stop_for_a_while()
        self._sleep_until(1.0)
        self._finish()

    def end(self) -> None:
        """End all threads."""
        self._is_running = False
        self._updates.stop()
        for pair in self._pairs:
            pair.stop_sending()
            pair.stop_receiving()
        for thread in self._threads:
            if thread.ident is not None:
                thread.join(60)

    def judge(self) -> None:
        """Add the verdict and the faults of the pairs and the updates to the record."""
        record = self.record
        record.accepted = sum(len(pair.accepted) for pair in self._pairs)
        record.faults += [fault for pair in self._pairs for fault in pair.check()] + self._updates.faults
        log = self._broker.stderr_path.read_text(errors="replace")
        if "Traceback" in log:
            record.faults.append(f"log: a traceback: {log[log.index('Traceback') :][:2000]}")
        samples = [one for one in record.samples if one.at_s >= record.life_s]
        record.findings = judge(samples, [one for one in record.latencies if self._counts(one)])

    def _counts(self, latency: Latency) -> bool:
        """Return whether a latency is of the life that is judged, and of a process that was not stopped."""
        end_s = latency.at_s + latency.milliseconds / 1000
        is_stopped = any(latency.at_s < end and end_s > begin for begin, end in self._stops)
        return latency.at_s >= self.record.life_s and not is_stopped

    def _finish(self) -> None:
        """Stop the load, receive what is left, stop the broker and verify its log."""
        for pair in self._pairs:
            pair.stop_sending()
        drain(self._pairs)
        self._is_alive = False
        self.end()
        code = self._broker.stop()
        if code:
            self.record.faults.append(f"exit: the broker stopped with {code}: {self._broker.last_log_line()}")
        self.record.faults += verify_faults(self._broker.directory)

    def _kill(self) -> None:
        self._is_alive = False
        self._broker.kill()
        self.record.faults += verify_faults(self._broker.directory)
        self._broker.restart()
        self._is_alive = True

    def _stop_for_a_while(self) -> None:
        process, begin = psutil.Process(self._broker.pid), self._now_s()
        process.suspend()
        time.sleep(_STOP_SECONDS)
        process.resume()
        self._stops.append((begin, self._now_s() + _SETTLED_SECONDS))

    def _repeated(self, name: str, work: Callable[[str, random.Random], None], pause_s: float) -> Callable[[], None]:
        """Return the function of a thread that does a round after the other."""
        chance = random.Random(self._chance.randrange(1 << 32))

        def run() -> None:
            while self._is_running:
                was_alive, url = self._is_alive, self._broker.url
                try:
                    work(url, chance)
                    self.record.rounds[name] += 1
                except (ToolError, OSError, AssertionError) as error:
                    self.record.interrupted[name] += 1
                    # A kill within a round explains what it misses, and a faulty peer may be ended at any moment.
                    if name in WORK and was_alive and self._is_alive and url == self._broker.url:
                        self.record.faults.append(f"{name}: {error!r}")
                time.sleep(pause_s * chance.uniform(0.5, 1.5))

        return run

    def _probe(self) -> None:
        """Run a probe for each life of the broker, and record what it says."""
        file = self._broker.directory.with_name("probe.block")
        while self._is_running:
            # A broker that was just killed has no process.
            pid = str(self._broker.pid) if self._is_alive else "0"
            command = [sys.executable, "-m", "tests.soak.probe", self._broker.url, pid, str(file)]
            with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
                assert process.stdout is not None
                for line in process.stdout:
                    begin, message, waiting, machine = map(float, line.split())
                    self.record.latencies.append(Latency(begin - self._began, message, waiting, machine))
                    if not self._is_running:
                        process.terminate()
            time.sleep(_RETRY_SECONDS)

    def _sample(self) -> None:
        while self._is_running:
            # A broker that is not there has no sample.
            with suppress(psutil.Error, OSError, AssertionError):
                self.record.samples.append(_sample_of(self._now_s(), self._broker))
            time.sleep(_SAMPLE_SECONDS)

    def _now_s(self) -> float:
        return time.monotonic() - self._began

    def _sleep_until(self, share: float) -> None:
        time.sleep(max(0.0, share * self._seconds - self._now_s()))


def _fill(url: str) -> None:
    """Send the messages that silent readers acquire and never settle."""
    with LinkClient.connect(BrokerUrl.parse(url)) as client:
        publisher = Publisher(client, client.attach_sender("held"))
        for number in range(_HELD_COUNT):
            publisher.offer(Message(header=Header(durable=True), body=(Data(bytes(1000)),)).encode(), number)
        publisher.finish()


def _sample_of(at_s: float, broker: CampaignBroker) -> Sample:
    process = psutil.Process(broker.pid)
    disk_bytes = 0
    for path in broker.directory.rglob("*"):
        with suppress(FileNotFoundError):
            disk_bytes += 512 * path.stat().st_blocks
    return Sample(at_s, process.memory_info().rss, process.num_fds(), process.num_threads(), disk_bytes)
