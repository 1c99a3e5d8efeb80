"""The commands that watch a broker, against a real one."""

import json
import socket
from pathlib import Path
from typing import Any

import pytest

from ambermq.engine.history.timestamps import iso_time
from ambermq.protocol.amqp10.performatives.classes import Attach, Detach, Flow, Source, Target, Transfer
from ambermq.protocol.http.readiness import readiness
from ambermq.tools.broker.child_broker import ChildBroker
from ambermq.tools.client.broker_url import BrokerUrl
from ambermq.tools.client.link_client import LinkClient
from ambermq.tools.monitor.check_command import Threshold, findings, parse_threshold
from ambermq.tools.monitor.reading import RATE_NAMES, BrokerReading, rates_between
from ambermq.tools.monitor.status_command import status_lines
from tests.protocol.peers import FIRST_ID
from tests.protocol.tcp import TcpWire
from tests.tools.conftest import Run


def listed(run: Run, *words: str) -> list[dict[str, Any]]:
    """Return the rows of a list."""
    done = run(*words, "--output", "ndjson")
    assert done.exit_code == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_a_suspended_link_is_listed_shown_and_ended(on_broker: Run, broker: ChildBroker) -> None:
    """It is no connection's, and what it keeps returns at its end."""
    wire = TcpWire.begun(broker.url, container="keeper")
    kept = Source(address="kept", durable=2, expiry_policy="never")
    wire.say(Attach(name="l", handle=0, role=True, source=kept, target=Target(), initial_delivery_count=0))
    wire.expect(Attach)
    assert on_broker("send", "kept", "one").exit_code == 0
    windows = {"next_incoming_id": 0, "incoming_window": 9, "next_outgoing_id": FIRST_ID, "outgoing_window": 9}
    wire.say(Flow(handle=0, delivery_count=0, link_credit=2, **windows))  # type: ignore[arg-type]  # numbers
    wire.expect(Transfer)
    wire.say(Detach(handle=0))
    wire.expect(Detach)
    (row,) = [row for row in listed(on_broker, "links", "list") if row["state"] == "suspended"]
    assert row["name"].startswith("suspended.default.")
    assert (row["role"], row["queue"], row["container"], row["link"]) == ("consumer", "kept", "keeper", "l")
    assert (row["unsettled"], row["until_us"], row["connection"]) == (1, None, None)
    assert row["memory_bytes"] > 1000
    wire.close()
    shown = row
    while shown["until_us"] is None:
        shown = json.loads(on_broker("links", "show", row["name"], "--output", "json").stdout)
    assert shown["until_us"] > 1e15
    assert f"until         {iso_time(shown['until_us'])}" in on_broker("links", "show", row["name"]).stdout
    assert "1 links, which keep 1 deliveries" in on_broker("status", "--interval", "0.1").stdout
    assert on_broker("links", "close", row["name"]).exit_code == 0
    assert not [row for row in listed(on_broker, "links", "list") if row["state"] == "suspended"]
    assert on_broker("links", "close", row["name"]).exit_code == 6
    assert on_broker("links", "show", row["name"]).exit_code == 6
    assert json.loads(on_broker("queue", "show", "kept", "--output", "json").stdout)["available"] == 1


def test_a_connection_is_listed_shown_and_closed(on_broker: Run, broker: ChildBroker) -> None:
    """With its session and its link, which tell whose they are; what is gone is not found."""
    client = LinkClient.connect(BrokerUrl.parse(broker.url))
    client.attach_receiver("watched")
    link = next(row for row in listed(on_broker, "links", "list") if row["address"] == "watched")
    assert (link["role"], link["queue"], link["messages"]) == ("consumer", "watched", 0)
    number = str(link["connection"])
    shown = json.loads(on_broker("connections", "show", number, "--output", "json").stdout)
    assert (shown["mechanism"], shown["user"], shown["links"], shown["state"]) == ("ANONYMOUS", None, 1, "open")
    assert shown["peer"].startswith("127.0.0.1:")
    assert [row["name"] for row in listed(on_broker, "sessions", "list", "--connection", number)] == [link["session"]]
    assert json.loads(on_broker("links", "show", link["name"], "--output", "json").stdout)["link"] == link["link"]
    assert on_broker("links", "close", link["name"]).exit_code == 0
    assert listed(on_broker, "links", "list", "--connection", number) == []
    assert on_broker("links", "close", link["name"]).exit_code == 6
    assert on_broker("sessions", "close", link["session"]).exit_code == 0
    assert on_broker("connections", "close", number).exit_code == 0
    # It is there until its client, which reads nothing, answers the close.
    assert json.loads(on_broker("connections", "show", number, "--output", "json").stdout)["state"] == "closing"
    client.close()
    assert on_broker("connections", "show", "999999").exit_code == 6


def test_a_connection_has_a_line_at_its_beginning_and_at_its_end(run: Run, tmp_path: Path) -> None:
    """With the reason and the totals, as JSON if that is asked for; what a client chose is escaped."""
    broker = ChildBroker(tmp_path / "data", arguments=("--log-format", "json"))
    broker.start()
    try:
        assert run("send", "q", "x", "--url", broker.url).exit_code == 0
        with TcpWire.begun(broker.url, container="a\nb\x1b[2J"):
            pass
    finally:
        broker.stop()
    lines = [json.loads(line) for line in broker.stderr_path.read_text().splitlines()]
    opened = [line for line in lines if line["event"] == "connection opened"]
    closed = [line for line in lines if line["event"] == "connection closed"]
    assert [line["connection"] for line in opened] == [line["connection"] for line in closed] == [1, 2]
    assert (closed[0]["messages_in"], closed[0]["reason"]) == (1, "closed by the peer")
    assert opened[1]["container"] == "a\\nb\\x1b[2J"


def test_status_is_one_screen(on_broker: Run) -> None:
    """Health first; JSON has the figures, the rates and the deepest queues."""
    assert on_broker("send", "seen", "a").exit_code == 0
    lines = on_broker("status", "--interval", "0.1").stdout.splitlines()
    assert lines[0].split()[0] == "health"
    assert all(len(line) <= 80 for line in lines)
    told = json.loads(on_broker("status", "--interval", "0.1", "--output", "json").stdout)
    assert told["figures"]["health"] in {"ready", "degraded"}
    assert told["rates"]["messages_in"] == 0
    queue = next(row for row in told["queues"] if row["name"] == "seen")
    assert queue["oldest_age_us"] >= 0


def test_check_judges(on_broker: Run) -> None:
    """A warning passes unless it is strict; a critical threshold, and a queue that is missing, fail."""
    for text in ("a", "b"):
        assert on_broker("send", "judged", text).exit_code == 0
    only = ("check", "--queue", "judged")
    assert on_broker(*only, "--crit", "depth=3").exit_code == 0
    assert on_broker(*only, "--warn", "depth=2").exit_code == 0
    assert on_broker(*only, "--warn", "depth=2", "--strict").exit_code == 1
    done = on_broker(*only, "--warn", "depth=1", "--crit", "depth=2", "--output", "json")
    assert done.exit_code == 1
    assert json.loads(done.stdout)["level"] == "critical"
    assert on_broker("check", "--queue", "missing").exit_code == 1
    assert on_broker("check", "--warn", "size=3").exit_code == 2


def test_no_broker_has_an_exit_code_of_its_own(run: Run) -> None:
    """For a probe: 4."""
    assert run("check", "--url", "amqp://127.0.0.1:1").exit_code == 4


def test_top_refuses_without_a_terminal(on_broker: Run) -> None:
    """Nothing would end it."""
    done = on_broker("top")
    assert done.exit_code == 2
    assert "needs a terminal" in done.stderr


@pytest.mark.parametrize(
    ("text", "expected"),
    [("depth=5", ("depth", 5)), ("age=5m", ("age", 300_000_000)), ("age=2h", ("age", 7_200_000_000))],
)
def test_a_threshold_is_read(text: str, expected: tuple[str, int]) -> None:
    """Ages in microseconds."""
    assert parse_threshold("warning", text) == Threshold("warning", *expected)


def test_a_degraded_broker_is_a_warning() -> None:
    """And one that is not ready is critical."""
    degraded = {"health": "degraded", "health_reason": "why"}
    assert findings(degraded, (), (), ()) == [("warning", "degraded: why")]
    assert findings({"health": "room"}, (), (), ()) == [("critical", "room")]


def test_a_rate_is_of_a_second() -> None:
    """A counter that fell, as after a restart, has the rate 0."""
    before = BrokerReading(1.0, {"messages_in": 10, "messages_out": 5})
    after = BrokerReading(3.0, {"messages_in": 30, "messages_out": 1})
    rates = rates_between(before, after)
    assert (rates["messages_in"], rates["messages_out"]) == (10, 0)


def test_trace_context_passes_untouched(on_broker: Run, tmp_path: Path) -> None:
    """A traceparent in the application properties arrives as it was sent."""
    parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    message = json.dumps({"properties": {"traceparent": parent, "tracestate": "a=b"}, "text": "x"})
    (tmp_path / "messages").write_text(f"{message}\n")
    assert on_broker("send", "traced", "--ndjson", "--file", tmp_path / "messages").exit_code == 0
    done = on_broker("receive", "traced", "--count", "1", "--ndjson")
    assert done.exit_code == 0
    received = json.loads(done.stdout.splitlines()[0])
    assert received["properties"] == {"traceparent": parent, "tracestate": "a=b"}


def test_a_fenced_broker_is_not_ready(run: Run, tmp_path: Path) -> None:
    """Its lock file is another one: `status` and `check` say what `/readyz` says."""
    broker = ChildBroker(tmp_path / "data")
    broker.start()
    try:
        lock = broker.directory / "lock"
        lock.rename(tmp_path / "before")
        lock.touch()
        shown = run("status", "--interval", "0.1", "--url", broker.url)
        assert shown.exit_code == 0
        assert shown.stdout.startswith("health      fenced: the lock file of the data directory is not that of this")
        assert run("check", "--url", broker.url).exit_code != 0
    finally:
        broker.kill()


@pytest.mark.parametrize(
    ("figures", "words"),
    [
        ({"disk_is_full": True}, "room: the disk is full"),
        ({"is_fenced": True, "disk_is_full": True}, "fenced: the lock file"),
        ({"room_bytes": 1, "room_low_bytes": 9}, "room: 1 bytes of room on the disk, expected 9"),
        (
            {"room_bytes": 9, "room_low_bytes": 9, "room_is_low": True, "room_resume_bytes": 11},
            "room: 9 bytes of room on the disk, expected 11 (room_resume_bytes)",
        ),
        (
            {"process_memory_is_low": True, "process_memory_bytes": 7, "process_memory_high_bytes": 5},
            "memory: the process uses 7 bytes, low from 5 (process_memory_high_bytes)",
        ),
        (
            {"descriptors_are_low": True, "descriptors_free": 3, "descriptors_free_low": 12},
            "descriptors: 3 file descriptors are free, low below 12 (descriptors_free_low)",
        ),
        ({"sync_wait_us": 9_000_000, "sync_stalled_ms": 5000}, "stalled: a sync of the log has lasted 9000 ms"),
    ],
)
def test_the_first_line_of_the_status_says_what_is_wrong(figures: dict[str, Any], words: str) -> None:
    """With the reason."""
    found = readiness(figures)
    rates = dict.fromkeys(RATE_NAMES, 0.0)
    lines = status_lines({**figures, "health": found.word, "health_reason": found.reason}, rates)
    assert lines[0].startswith(f"health      {words}")


def test_a_silent_broker_ends_the_command(run: Run) -> None:
    """It accepts, and says nothing: exit 4 after 10 s."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        done = run("status", "--url", f"amqp://127.0.0.1:{silent.getsockname()[1]}")
    assert done.exit_code == 4
    assert "the broker has sent nothing for" in done.stderr
