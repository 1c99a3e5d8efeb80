"""Reading beside a broker: at a pace while it is busy, as fast as can be else."""

import json
import os
from pathlib import Path

import pytest

from ambermq.log.manifest.writer_lock import lock_path
from ambermq.log.storage.disk import DiskStorage
from ambermq.tools.past import background_storage as paced_storage
from ambermq.tools.past import rate_limit as pace
from ambermq.tools.past.background_storage import BackgroundStorage, BrokerLoad, storage_of
from ambermq.tools.past.rate_limit import RateLimit
from ambermq.tools.terminal.errors import ToolError


class Clock:
    """Time that passes in sleep alone, and processor time that is set by hand."""

    def __init__(self) -> None:
        self.now_s = 100.0
        self.used_s = 0.0
        self.slept_s = 0.0

    def monotonic(self) -> float:
        """Return the time."""
        return self.now_s

    def process_time(self) -> float:
        """Return the processor time used."""
        return self.used_s

    def sleep(self, seconds: float) -> None:
        """Advance the clock."""
        self.slept_s += seconds
        self.now_s += seconds

    def work(self, seconds: float) -> None:
        """Use a processor for so long."""
        self.used_s += seconds
        self.now_s += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    for module in (pace, paced_storage):
        monkeypatch.setattr(module, "time", clock)
    return clock


def test_a_rate_is_kept(clock: Clock) -> None:
    """A hundred pieces take the time that their bytes have at the rate, however small each of them is."""
    kept = RateLimit(1000)
    for _ in range(100):
        kept.spend(10)
    assert clock.slept_s == pytest.approx(1.0, abs=0.02)


def test_a_share_of_a_processor_is_kept(clock: Clock) -> None:
    """A process with a quarter of a processor waits three times as long as it computed."""
    kept = RateLimit(0, processor_share=0.25)
    for _ in range(50):
        clock.work(0.01)
        kept.spend(1)
    assert clock.slept_s == pytest.approx(1.5, abs=0.04)


def test_what_was_done_before_a_new_beginning_is_not_waited_for(clock: Clock) -> None:
    """After a long time without a bound one begins as if nothing had been done."""
    kept = RateLimit(1000, processor_share=0.25)
    clock.work(60)
    kept.reset()
    kept.spend(10)
    assert clock.slept_s == 0


def test_only_beside_a_busy_broker_reads_wait(tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same file is read at once while the broker idles, and at the rate while it works."""
    path = tmp_path / "file"
    path.write_bytes(bytes(range(256)) * 40)
    used = [0.0]
    monkeypatch.setattr(BrokerLoad, "_used", lambda _: used[0])
    file = BackgroundStorage(RateLimit(1000), BrokerLoad(os.getpid())).open(str(path))
    clock.now_s += 1
    assert [file.read(1024, 1024 * number) for number in range(10)] == [bytes(range(256)) * 4] * 10
    assert clock.slept_s == 0
    clock.now_s, used[0] = clock.now_s + 1, 0.5
    for number in range(10):
        file.read(1000, number)
        used[0] += 0.5
    assert clock.slept_s == pytest.approx(9.0, abs=0.1)
    file.close()


def test_the_processor_time_of_a_process_is_read() -> None:
    """What it used is known of a process that lives, and 0 of one that does not."""
    while not (used := BrokerLoad(os.getpid())._used()):
        sum(range(100_000))
    assert used > 0
    assert BrokerLoad(1 << 30)._used() == 0


def test_without_a_broker_nothing_is_paced(tmp_path: Path) -> None:
    """A directory without a broker is read without a limit."""
    assert type(storage_of(str(tmp_path))) is DiskStorage


def test_beside_a_broker_the_environment_bounds_the_rate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By default reads are paced, 0 lifts the bound, and what is no number is refused."""
    Path(lock_path(str(tmp_path))).write_text(json.dumps({"pid": os.getpid()}))
    assert type(storage_of(str(tmp_path))) is BackgroundStorage
    monkeypatch.setenv("AMBERMQ_READ_RATE", "0")
    assert type(storage_of(str(tmp_path))) is DiskStorage
    monkeypatch.setenv("AMBERMQ_READ_RATE", "fast")
    with pytest.raises(ToolError, match="invalid read rate"):
        storage_of(str(tmp_path))
