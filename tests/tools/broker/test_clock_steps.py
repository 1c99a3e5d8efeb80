"""A broker in a process of its own whose clock is stepped: its events, its log lines, and its timers."""

import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from ambermq.tools.client.broker_url import BrokerUrl
from ambermq.tools.client.link_client import LinkClient
from ambermq.tools.client.management_client import Management
from tests.stepped_broker import SteppedBroker
from tests.tools.conftest import Run

_DAY_S = 86_400
_YEARS_S = 85 * 365 * _DAY_S
_DEADLINE_S = 30


@pytest.fixture
def child(tmp_path: Path) -> Iterator[SteppedBroker]:
    """A broker that is not started yet."""
    broker = SteppedBroker(tmp_path / "data")
    yield broker
    broker.kill()


def figures(client: LinkClient) -> dict[str, Any]:
    """Return the attributes of the broker's management type."""
    return Management(client).request("READ", "org.ambermq.broker", {})[1]


def await_steps(child: SteppedBroker, count: int) -> dict[str, Any]:
    """Return the broker's figures when it has seen `count` steps since its start."""
    deadline = time.monotonic() + _DEADLINE_S
    with LinkClient.connect(BrokerUrl.parse(child.url)) as client:
        while (found := figures(client))["clock_steps"] < count:
            assert time.monotonic() < deadline
            time.sleep(0.05)
    return found


def events(run: Run, child: SteppedBroker, *options: str) -> list[dict[str, Any]]:
    """Return the events of the log, each with `seconds`: how far its time is ahead of the machine's clock."""
    result = run("history", "tail", "--limit", 1000, "--output", "json", *options, "--data", child.directory)
    assert result.exit_code == 0, result.stderr
    found = [json.loads(line) for line in result.stdout.splitlines()]
    for event in found:
        moment = datetime.fromisoformat(event["time"])
        event["seconds"] = (moment - datetime.now(UTC)).total_seconds()
    return found


def published(run: Run, child: SteppedBroker) -> list[bool]:
    """Return of each published event whether its time is of today."""
    return [abs(one["seconds"]) < _DAY_S / 2 for one in events(run, child, "--type", "published")]


@pytest.mark.parametrize("ahead_s", [_YEARS_S, _DAY_S, -_DAY_S])
def test_the_times_of_events_follow_a_step_and_come_back(run: Run, child: SteppedBroker, ahead_s: int) -> None:
    """After 85 years forward and back, events had times of 2111, after a restart too, without a word."""
    child.start()
    for number, ahead in enumerate((0, ahead_s, 0)):
        child.step_to(ahead)
        await_steps(child, number)
        assert run("send", "q", f"message {number}", "--id", f"m-{number}", "--url", child.url).exit_code == 0
    step = await_steps(child, 2)["clock_step"]
    assert round((step["new_us"] - step["old_us"]) / 1_000_000) == -ahead_s
    assert published(run, child) == [True, False, True]
    steps = [round(one["seconds"] / _DAY_S) for one in events(run, child, "--type", "clock-stepped")]
    assert steps == [round(ahead_s / _DAY_S), 0]
    lines = [line for line in child.stderr_path.read_text().splitlines() if "clock stepped" in line]
    assert len(lines) == 2
    assert child.stop() == 0
    child.start()
    assert await_steps(child, 0)["clock_step"] is None
    assert run("send", "q", "message 3", "--url", child.url).exit_code == 0
    assert published(run, child) == [True, False, True, True]
    listed = run("receive", "q", "--count", 4, "--timeout", "10", "--url", child.url)
    assert [line.rpartition(" ")[2] for line in listed.stdout.splitlines()] == ["0", "1", "2", "3"]


def test_a_log_whose_times_lie_in_the_future_is_freed_by_its_next_start(run: Run, child: SteppedBroker) -> None:
    """The clock was right again before the start: the last event is 85 years ahead."""
    child.step_to(_YEARS_S)
    child.start()
    assert run("send", "q", "ahead", "--url", child.url).exit_code == 0
    assert child.stop() == 0
    child.step_to(0)
    child.start()
    assert await_steps(child, 1)["clock_step"]["offset"] > 0
    assert "clock stepped" in child.stderr_path.read_text()
    assert run("send", "q", "today", "--url", child.url).exit_code == 0
    assert published(run, child) == [False, True]
    assert run("queue", "list", "--at", "now", "--data", child.directory).exit_code == 0


def test_a_step_ends_no_connection_and_no_wait(run: Run, child: SteppedBroker) -> None:
    """Idle time-outs, the wait of a drain and the interval of snapshots run by elapsed time."""
    config = child.directory.with_name("config.toml")
    config.write_text(
        "[engine]\nsnapshot_interval_s = 3600\nsnapshot_pause_s = 1\n[connection]\nidle_timeout_ms = 5000\n"
    )
    child = SteppedBroker(child.directory, arguments=("--config", str(config)))
    child.start()
    try:
        with LinkClient.connect(BrokerUrl.parse(child.url)) as client:
            for number, ahead in enumerate((_YEARS_S, 0), 1):
                child.step_to(ahead)
                await_steps(child, number)
                assert figures(client)["connections"] >= 1
        assert json.loads(run("snapshot", "list", "--output", "json", "--url", child.url).stdout or "[]") == []
        assert child.stop() == 0
    finally:
        child.kill()


def test_a_time_finds_what_was_written_after_a_step_back(run: Run, child: SteppedBroker) -> None:
    """The state at a time is that after the last event at or before it, in the order of offsets."""
    child.step_to(_DAY_S)
    child.start()
    assert run("send", "q", "tomorrow", "--id", "m", "--url", child.url).exit_code == 0
    child.step_to(0)
    await_steps(child, 1)
    assert run("send", "q", "today", "--url", child.url).exit_code == 0
    listed = run("queue", "browse", "q", "--at", "now", "--data", child.directory)
    assert [line.split()[-1] for line in listed.stdout.splitlines()[-2:]] == ["tomorrow", "today"], listed.stdout
    for begin in ([], ["--since", f"{_DAY_S // 3600 + 1}h ago"]):
        shown = run("history", "queue", "q", *begin, "--output", "json", "--data", child.directory)
        if begin:
            # The log has no event with so early a time.
            assert "lies before the log's history" in shown.stderr
        else:
            assert shown.exit_code == 0, shown.stderr
            assert json.loads(shown.stdout)[-1]["depth"] == 2
    assert run("receive", "q", "--url", child.url).exit_code == 0
    told = run("history", "message", "m", "--data", child.directory)
    assert told.exit_code == 0, told.stderr
    assert "-23 h 59 min" in told.stdout
    assert "+-" not in told.stdout
