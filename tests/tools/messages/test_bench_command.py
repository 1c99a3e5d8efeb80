"""`ambermq bench` on a running broker."""

import json

from ambermq.tools.broker.child_broker import ChildBroker
from ambermq.tools.terminal.exit_codes import ExitCode
from tests.tools.conftest import Run

FIGURES = {"seconds", "messages_per_second"} | {
    f"{what}_{which}_ms" for what in ("settle", "delivery") for which in ("p50", "p99", "max")
}


def test_every_message_is_counted_and_timed(run: Run, broker: ChildBroker) -> None:
    """With --data the broker's CPU is known too; what other runs left behind is not counted."""
    run("send", "ambermq-bench", "left behind", "--url", broker.url)
    result = run("bench", "--data", broker.directory, "--count", 300, "--size", 50, "--output", "json")
    assert result.exit_code == ExitCode.OK
    values = json.loads(result.stdout)
    assert (values["messages"], values["size"], values["durable"]) == (300, 50, True)
    assert values.keys() >= FIGURES
    assert values["broker_cpu_us_per_message"] >= 0
    assert 0 < values["settle_p50_ms"] <= values["settle_p99_ms"] <= values["settle_max_ms"]


def test_a_rate_is_kept(on_broker: Run, broker: ChildBroker) -> None:
    """N messages take the time of N - 1 intervals at least; --pid names the process to watch."""
    options = ("--count", 21, "--rate", 100, "--no-durable", "--address", "slow", "--pid", broker.pid)
    values = json.loads(on_broker("bench", *options, "--output", "json").stdout)
    assert values["seconds"] >= 0.2
    assert "broker_cpu_us_per_message" in values


def test_without_a_process_no_cpu_is_claimed(on_broker: Run) -> None:
    """A broker by URL may be anywhere."""
    assert "cpu" not in on_broker("bench", "--count", 10).stdout


def test_refused_messages_fail_the_run(on_broker: Run) -> None:
    """Exit code 1 says how many."""
    on_broker("queue", "declare", "narrow", "--messages-max", 1)
    on_broker("send", "narrow", "x")
    assert on_broker("queue", "show", "narrow").exit_code == ExitCode.OK
    missing = on_broker("bench", "--pid", 2**22 + 1, "--count", 1)
    assert missing.exit_code == ExitCode.NOT_FOUND
    assert "no such process" in missing.stderr
