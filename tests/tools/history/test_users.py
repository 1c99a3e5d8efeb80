"""The history says which user did what, from a real broker with users."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ambermq.tools.broker.child_broker import ChildBroker
from ambermq.tools.client.broker_url import BrokerUrl
from ambermq.tools.client.link_client import LinkClient
from tests.tools.conftest import Run

_CONFIG = """
[users]
alice = "wonder"
bob = "builder"
"""


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[ChildBroker]:
    """A broker with two users."""
    config = tmp_path / "ambermq.toml"
    config.write_text(_CONFIG)
    config.chmod(0o600)
    broker = ChildBroker(tmp_path / "data", arguments=("--config", str(config)))
    broker.start()
    yield broker
    broker.stop()


def url_of(broker: ChildBroker, user: str) -> str:
    """Return the URL with a user and its password."""
    password = {"alice": "wonder", "bob": "builder"}[user]
    return broker.url.replace("amqp://", f"amqp://{user}:{password}@")


def lines_of(run: Run, broker: ChildBroker) -> list[dict[str, Any]]:
    """Return the events of the log."""
    done = run("log", "dump", "--data", broker.directory, "--output", "json")
    assert done.exit_code == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_a_story_names_the_users_of_links_and_requests(run: Run, broker: ChildBroker) -> None:
    """The one that sent, the one that received, and the one that purged; each also in its event."""
    alice, bob = url_of(broker, "alice"), url_of(broker, "bob")
    for text in ("one", "two"):
        assert run("send", "orders", text, "--id", text, "--url", alice).exit_code == 0
    assert run("receive", "orders", "--count", "1", "--url", bob).exit_code == 0
    assert run("queue", "purge", "orders", "--url", bob).exit_code == 0
    assert run("queue", "delete", "orders", "--url", alice).exit_code == 0
    table = run("history", "message", "one", "--data", broker.directory).stdout
    assert table.splitlines()[2].split()[1:4] == ["published", "-", "alice"]
    stories = {
        name: json.loads(run("history", "message", name, "--data", broker.directory, "--output", "json").stdout)
        for name in ("one", "two")
    }
    assert [(each["what"], each["user"]) for each in stories["one"][0]["events"]] == [
        ("published", "alice"),
        ("routed", "alice"),
        ("acquired", "bob"),
        ("accepted", "bob"),
    ]
    assert [(each["what"], each["user"]) for each in stories["two"][0]["events"]][2:] == [("purged", "bob")]
    events = lines_of(run, broker)
    users = {event["type"]: event.get("by") or event.get("user") for event in events if event.get("queue") == "orders"}
    assert users["queue-declared"] == "alice"
    assert users["consumer-attached"] == "bob"
    assert users["purged"] == "bob"
    assert users["queue-deleted"] == "alice"
    assert next(event for event in events if event["type"] == "queue-deleted")["words"].endswith(", by user 'alice'")
    assert next(event for event in events if event["type"] == "muxer-declared").get("by") is None


def test_a_closed_link_names_the_administrator(run: Run, broker: ChildBroker) -> None:
    """A local command comes as the user `local`; a link that its own client ends names no user."""
    assert run("queue", "declare", "orders", "--data", broker.directory).exit_code == 0
    with LinkClient.connect(BrokerUrl.parse(url_of(broker, "bob"))) as client:
        for _ in range(2):
            client.attach_receiver("orders")
        rows = run("links", "list", "--url", url_of(broker, "alice"), "--output", "ndjson").stdout.splitlines()
        names = [row["name"] for row in map(json.loads, rows) if row["queue"] == "orders"]
        assert run("links", "close", names[0], "--url", url_of(broker, "alice")).exit_code == 0
    events = lines_of(run, broker)
    assert next(event for event in events if event["type"] == "queue-declared")["by"] == "local"
    assert [event.get("by") for event in events if event["type"] == "consumer-detached"] == ["alice", None]
