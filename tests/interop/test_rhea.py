"""rhea, the Node.js client, against the broker: each scenario is a script that prints what it saw, in lines of JSON."""

import json
import shutil
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from ambermq.tools.broker.child_broker import ChildBroker
from tests.interop.conftest import Connect, StartBroker

HERE = Path(__file__).parent / "rhea"

pytestmark = [
    pytest.mark.skipif(shutil.which("node") is None, reason="Node.js is not installed: no node on the PATH"),
    pytest.mark.skipif(not (HERE / "node_modules" / "rhea").is_dir(), reason="rhea is not installed: run `make rhea`"),
]

Scenario = Callable[..., list[dict[str, Any]]]


def start(broker: ChildBroker, script: str, queue: str) -> subprocess.Popen[str]:
    """Start a scenario."""
    command = ["node", str(HERE / f"{script}.js"), str(urlsplit(broker.url).port), queue]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finish(process: subprocess.Popen[str]) -> list[dict[str, Any]]:
    """Wait for the end of a scenario; return what it said."""
    try:
        said, errors = process.communicate(timeout=60)
    except subprocess.TimeoutExpired:
        process.kill()
        said, errors = process.communicate()
        pytest.fail(f"the scenario hangs; it said {said}{errors}")
    assert (process.returncode, errors) == (0, ""), f"{said}{errors}"
    return [json.loads(line) for line in said.splitlines()]


@pytest.fixture
def scenario(broker: ChildBroker, queue: str) -> Scenario:
    """Run a scenario against the module's broker, on a queue of its own."""

    def run(script: str) -> list[dict[str, Any]]:
        return finish(start(broker, script, queue))

    return run


@pytest.fixture
def fixed_port() -> int:
    """A port that is free now, for a broker that comes back where it was."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
    return port


def test_bodies_sections_and_properties(scenario: Scenario) -> None:
    """Every body, section and property that rhea can write comes back as it decodes its own bytes."""
    said = scenario("bodies")
    assert len(said) > 50
    assert [each for each in said if not each["same"]] == []
    assert {each["outcome"] for each in said if "body" in each} == {"accepted"}


def test_outcomes(scenario: Scenario) -> None:
    """Released and modified come back, counted where delivery failed, annotated; rejected and accepted are gone."""
    why = {"x-opt-why": "it failed"}
    assert scenario("outcomes") == [
        {"step": "release", "body": "a", "count": 0, "annotations": None},
        {"step": "failed", "body": "a", "count": 0, "annotations": None},
        {"step": "modified", "body": "a", "count": 1, "annotations": why},
        {"step": "reject", "body": "a", "count": 1, "annotations": why},
        {"step": "not here", "body": "b", "count": 0, "annotations": None},
        {"step": "accept", "body": "c", "count": 0, "annotations": None},
        {"step": "elsewhere", "body": "b", "count": 0},
        {"step": "after a loss", "body": "b", "count": 1},
    ]


def test_credit_and_drain(scenario: Scenario) -> None:
    """Never beyond credit; each drain is answered by the flow that rhea waits for, also with nothing to give back."""
    assert scenario("credit") == [
        {"step": "no credit", "got": 0},
        {"step": "drain of nothing", "got": []},
        {"step": "credit 3", "got": [0, 1, 2]},
        {"step": "drain of 4", "got": [3, 4, 5, 6]},
        {"step": "drain of 50", "got": [7, 8, 9]},
        {"step": "drain of an empty queue", "got": []},
        {"step": "nothing later", "got": 0},
        {"step": "later", "got": ["later"]},
    ]


def test_many_frames(scenario: Scenario) -> None:
    """Messages of up to 3 MiB in frames of 8 KiB both ways; one over the limit ends its link alone."""
    assert scenario("large") == [
        {"outcomes": ["accepted"] * 5},
        {"same": [True] * 5},
        {"condition": "amqp:link:message-size-exceeded"},
        {"outcomes": ["accepted"]},
    ]


def test_receiver_settles_second(scenario: Scenario) -> None:
    """An outcome without settling is answered by the broker's settlement; released comes again."""
    assert scenario("second") == [
        {"name": "accepted", "body": "a", "mode": 1, "settled": True},
        {"name": "released", "body": "b", "mode": 1, "settled": True},
        {"name": "rejected", "body": "b", "mode": 1, "settled": True},
        {"left": "c"},
    ]


def test_many_messages_settled_out_of_order(scenario: Scenario) -> None:
    """5,000 messages are accepted, come in order, and are gone whatever the order of their settlements."""
    assert scenario("many") == [{"accepted": 5000}, {"received": 5000, "in_order": True, "left": 0}]


def test_links(scenario: Scenario) -> None:
    """Refused links tell their condition and nothing else ends; names are free again; sessions are apart."""
    said = scenario("links")
    assert said[0] == {"product": "AmberMQ", "max_frame_size": 1024 * 1024, "channel_max": 255}
    assert said[1:4] == [
        {"sender": "amqp:not-found"},
        {"receiver": "amqp:not-found"},
        {"dynamic": True, "address": "/queues/$temporary.N"},
    ]
    assert said[4:] == [{"outcomes": ["accepted"]}] * 4 + [{"got": [0, 1, 2, 3]}]


def test_token(scenario: Scenario) -> None:
    """A token is answered on the link whose name is replied to; what Service Bus has beside a queue is not there."""
    assert scenario("token") == [
        {"answers": "one", "status": 202},
        {"beside": "$management", "condition": "amqp:not-found"},
        {"beside": "$DeadLetterQueue", "condition": "amqp:not-found"},
    ]


def test_subscriptions(scenario: Scenario) -> None:
    """A durable one with a selector is left and found again; dynamic sources; a selector on a queue."""
    assert scenario("subscriptions") == [
        {"durable": 2, "expiry": "never", "filters": ["jms-selector"]},
        {"outcomes": ["accepted", "released", "accepted"]},
        {"kept": ["1", "3"]},
        {"outcomes": ["released"]},
        {"outcomes": ["accepted"]},
        {"answers": ["answer"]},
        {"selected": ["b"]},
    ]


def test_login(start_broker: StartBroker) -> None:
    """PLAIN: the right password opens, a wrong one is refused as unauthorized."""
    said = finish(start(start_broker("--user", "alice:secret"), "login", "q"))
    assert said[0] == {"login": "good"}
    assert said[1]["login"] == "bad"


def test_nothing_accepted_is_lost_over_a_kill(start_broker: StartBroker, connect: Connect, fixed_port: int) -> None:
    """SIGKILL under a sender that reconnects: every message arrives, in the sender's order but for repetitions."""
    broker = start_broker("--port", str(fixed_port))
    process = start(broker, "reconnect", "q")
    assert process.stdout is not None
    assert json.loads(process.stdout.readline()) == {"accepted": 500}
    broker.kill()
    broker.start()
    said = finish(process)
    assert said[-1] == {"accepted": 3000}
    assert {"disconnected": True} in said
    receiver = connect(broker.url).receiver("q")
    receiver.drain(10_000)
    ids = [got.message.id for got in receiver.got]
    assert set(ids) == set(range(3000))
    assert len(ids) < 6000
    assert sorted(set(ids), key=ids.index) == list(range(3000))


def test_sources_that_take_nothing(scenario: Scenario) -> None:
    """A queue now and as it was, ended by drain, its filter echoed; the log's events; the future is refused."""
    assert scenario("sources") == [
        {"step": "now", "got": ["a", "b"]},
        {"step": "log", "count": 2},
        {"step": "then", "got": ["a"], "echoed": ["ambermq:at"]},
        {"step": "future", "condition": "amqp:precondition-failed"},
    ]
