"""Compactions that the broker starts by itself: when one is due, and that it is the same command."""

import time
from pathlib import Path

import pytest

from ambermq.engine.events import Compacted
from ambermq.engine.history.past import open_past
from ambermq.tools.broker.child_broker import ChildBroker
from ambermq.tools.config.compaction_schedule import CompactionConfig, Schedule
from ambermq.tools.config.log_facts import LogFacts
from tests.tools.conftest import Run
from tests.tools.sealing import load_until_sealed

_DEADLINE_S = 240.0


def test_nothing_is_due_unless_it_is_asked_for() -> None:
    """Without interval and share there is nothing to look for."""
    config = CompactionConfig()
    assert not config.is_on
    assert Schedule(config, 0.0).reason(1e9, LogFacts(log_bytes=1 << 40, live_bytes=0)) == ""


def test_an_interval_counts_from_the_end_of_the_last() -> None:
    """It is due when so long has passed since the start, and since each end."""
    schedule = Schedule(CompactionConfig(interval_s=100, pause_s=1), 50.0)
    assert schedule.reason(149.0, LogFacts(log_bytes=0, live_bytes=0)) == ""
    assert schedule.reason(150.0, LogFacts(log_bytes=0, live_bytes=0)) == "interval"
    schedule.ended(170.0, LogFacts(log_bytes=0, live_bytes=0))
    assert schedule.reason(269.0, LogFacts(log_bytes=0, live_bytes=0)) == ""
    assert schedule.reason(270.0, LogFacts(log_bytes=0, live_bytes=0)) == "interval"


def test_garbage_must_be_much_and_more_than_was_left() -> None:
    """Share and size are asked; what the last one left for the sake of history asks for no other."""
    config = CompactionConfig(garbage_percent=50, garbage_bytes_min=100, pause_s=10)
    schedule = Schedule(config, 0.0)
    assert schedule.reason(1.0, LogFacts(log_bytes=1000, live_bytes=501)) == ""
    assert schedule.reason(1.0, LogFacts(log_bytes=150, live_bytes=60)) == ""
    assert schedule.reason(1.0, LogFacts(log_bytes=1000, live_bytes=500)) == "garbage"
    schedule.ended(2.0, LogFacts(log_bytes=900, live_bytes=100))
    assert schedule.reason(11.0, LogFacts(log_bytes=2000, live_bytes=0)) == ""
    assert schedule.reason(13.0, LogFacts(log_bytes=999, live_bytes=100)) == ""
    assert schedule.reason(13.0, LogFacts(log_bytes=1000, live_bytes=100)) == "garbage"


def test_compressed_messages_are_counted_as_they_lie() -> None:
    """Messages that take more than the whole log are no reason to overlook what else lies in it by and by."""
    schedule = Schedule(CompactionConfig(garbage_percent=50, garbage_bytes_min=100, pause_s=10), 0.0)
    schedule.ended(0.0, LogFacts(log_bytes=1000, live_bytes=5000))
    assert schedule.reason(11.0, LogFacts(log_bytes=3000, live_bytes=7000)) == ""
    assert schedule.reason(11.0, LogFacts(log_bytes=3000, live_bytes=5000)) == "garbage"
    assert schedule.reason(11.0, LogFacts(log_bytes=1000, live_bytes=2600)) == ""
    assert schedule.reason(11.0, LogFacts(log_bytes=1000, live_bytes=2400)) == "garbage"
    schedule.ended(12.0, LogFacts(log_bytes=1000, live_bytes=500))
    assert schedule.reason(30.0, LogFacts(log_bytes=1200, live_bytes=700)) == ""


def test_the_options_are_those_of_the_configuration() -> None:
    """The options have both limits of history, and the runner."""
    config = CompactionConfig(keep_history_s=60, keep_history_bytes=1 << 20, spark=False)
    expected = ["--keep-history", "60s", "--keep-history", "1048576B", "--runner", "local"]
    assert config.arguments() == expected
    assert CompactionConfig(keep_history_s=0).arguments() == ["--keep-history", "0s", "--runner", "spark"]
    compressing = CompactionConfig(keep_history_s=0, compress=True)
    assert compressing.arguments() == ["--keep-history", "0s", "--compress", "--runner", "spark"]


@pytest.mark.parametrize(
    ("how", "reason"), [("interval_s = 1", "interval"), ("garbage_percent = 10\ngarbage_bytes_min = 1", "garbage")]
)
def test_a_broker_starts_one_by_itself(tmp_path: Path, run: Run, how: str, reason: str) -> None:
    """By the clock and by its garbage, with users too; the log says that it was compacted."""
    config = tmp_path / "config.toml"
    common = "keep_history_s = 0\nspark = false\ncheck_s = 1\npause_s = 1000"
    plain = '[log]\nsegment_bytes_min = 1048576\nsegment_bytes_max = 1048576\n[users]\nalice = "sec/ret"\n'
    config.write_text(plain)
    broker = ChildBroker(tmp_path / "data", arguments=("--config", str(config)))
    try:
        # Whatever it would find of a load that goes on: the next is a long way off.
        broker.start()
        assert run("send", "q", "--size", 1000, "--count", 3000, "--url", _url(broker)).exit_code == 0
        assert run("receive", "q", "--count", 2900, "--url", _url(broker)).exit_code == 0
        load_until_sealed(broker, 1, url=_url(broker))
        broker.stop()
        config.write_text(f"{plain}[compaction]\n{how}\n{common}\n")
        broker.start()
        (event,) = _compactions(broker)
        assert event.records_after < event.records_before
        assert len(run("receive", "q", "--all", "--timeout", 1, "--url", _url(broker)).stdout.splitlines()) == 100
        assert f"reason={reason}" in broker.stderr_path.read_text()
    finally:
        broker.kill()


def _url(broker: ChildBroker) -> str:
    """Where it listens, for the user that it knows."""
    return broker.url.replace("amqp://", "amqp://alice:sec%2Fret@")


def _compactions(broker: ChildBroker) -> list[Compacted]:
    """Wait until the log tells of a compaction."""
    deadline = time.monotonic() + _DEADLINE_S
    while time.monotonic() < deadline:
        with open_past(str(broker.directory)) as past:
            events = past.events(past.horizon.offset, past.end - 1)
            found = [event for event in events if isinstance(event, Compacted)]
        if found:
            return found
        time.sleep(0.2)
    raise AssertionError(broker.last_log_line())
