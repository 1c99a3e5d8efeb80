"""`ambermq subscription` on a running broker, and what there was in its past."""

import json
from collections.abc import Iterator

import pytest
from proton.reactor import DurableSubscription

from ambermq.tools.broker.child_broker import ChildBroker
from ambermq.tools.terminal.exit_codes import ExitCode
from tests.interop.proton_peer import Manager, ProtonPeer
from tests.tools.conftest import Run

SUBSCRIPTION = "org.ambermq.subscription"


@pytest.fixture
def peer(broker: ChildBroker) -> Iterator[ProtonPeer]:
    """A client called `me`."""
    connected = ProtonPeer(broker.url, container_id="me")
    yield connected
    connected.drop()


def test_a_subscription_is_listed_shown_and_deleted(on_broker: Run, peer: ProtonPeer) -> None:
    """By its name or that of its queue; while it has a receiver only with --force, which ends that."""
    receiver = peer.receiver("/topics/news.*", name="one", options=DurableSubscription())
    peer.sender("/topics/news.eu").send("x", "y")
    (row,) = json.loads(on_broker("subscription", "list", "--output", "json").stdout)
    told = {key: row[key] for key in ("name", "container", "topic", "durable", "shared", "consumers", "available")}
    assert told == {
        "name": "one",
        "container": "me",
        "topic": "news.*",
        "durable": True,
        "shared": False,
        "consumers": 1,
        "available": 2,
    }
    assert "news.*" in on_broker("subscription", "list").stdout
    for name in ("one", row["queue"]):
        assert json.loads(on_broker("subscription", "show", name, "--output", "json").stdout) == row
    refused = on_broker("subscription", "delete", "one", "--yes")
    assert (refused.exit_code, refused.stdout) == (ExitCode.FAILED, "")
    assert refused.stderr == "error: one: the broker says 409: subscription 'one' has 1 receivers\n"
    assert on_broker("subscription", "delete", "one", "--force").stdout == "deleted one with 2 messages\n"
    peer.wait(lambda: receiver.link.remote_condition is not None, "the end of the link")
    assert receiver.link.remote_condition.name == "amqp:resource-deleted"
    assert json.loads(on_broker("subscription", "list", "--output", "json").stdout) == []


def test_what_there_is_not_is_not_found(on_broker: Run) -> None:
    """With its exit code, and one message."""
    for command in (("show",), ("delete", "--yes")):
        missing = on_broker("subscription", *command, "none", "--container", "me")
        assert (missing.exit_code, missing.stdout) == (ExitCode.NOT_FOUND, "")
        assert missing.stderr == "error: none: the broker says 404: no subscription 'none' of container 'me'\n"


def test_several_of_a_name_are_told_apart(on_broker: Run, broker: ChildBroker, peer: ProtonPeer) -> None:
    """By --container; the name alone deletes none of them."""
    other = ProtonPeer(broker.url, container_id="you")
    for each in (peer, other):
        each.receiver("/topics/t", name="both", options=DurableSubscription())
    unclear = on_broker("subscription", "delete", "both", "--force", "--yes")
    assert unclear.exit_code == ExitCode.FAILED
    assert "means 2 subscriptions: $subscription." in unclear.stderr
    shown = on_broker("subscription", "show", "both", "--container", "you", "--output", "json")
    assert json.loads(shown.stdout)["container"] == "you"
    for container in ("me", "you"):
        deleted = on_broker("subscription", "delete", "both", "--container", container, "--force", "--output", "json")
        assert json.loads(deleted.stdout) == {"name": "both", "deleted": True, "messages": 0}
    other.drop()


def test_the_node_knows_subscriptions(broker: ChildBroker, peer: ProtonPeer) -> None:
    """GET-OPERATIONS and GET-ATTRIBUTES tell of them; there is no CREATE."""
    asking = ProtonPeer(broker.url)
    manager = Manager(asking)
    peer.receiver("/topics/q", name="q")
    told = manager.ask("GET-OPERATIONS", entityType=SUBSCRIPTION).body
    assert told == {SUBSCRIPTION: ["DELETE", "QUERY", "READ"]}
    names = manager.ask("GET-ATTRIBUTES", entityType=SUBSCRIPTION).body[SUBSCRIPTION]
    page = manager.ask("QUERY", entityType=SUBSCRIPTION)
    assert page.body["attributeNames"] == names
    assert page.body["total"] == 1
    made = manager.ask("CREATE", "x", type=SUBSCRIPTION)
    assert made.properties is not None
    assert made.properties["statusCode"] == 501
    asking.drop()


def test_the_past_has_them_too(run: Run, broker: ChildBroker, peer: ProtonPeer) -> None:
    """--at prints the subscriptions of a moment without a request to a broker."""
    place = ("--data", broker.directory)
    peer.receiver("/topics/past", name="gone", options=DurableSubscription())
    row = json.loads(run("subscription", "show", "gone", *place, "--output", "json").stdout)
    run("subscription", "delete", "gone", "--force", *place)
    shown = run("subscription", "show", "gone", "--at", row["id"] + 3, *place, "--output", "json")
    assert json.loads(shown.stdout)["topic"] == "past"
    listed = json.loads(run("subscription", "list", "--at", row["id"] - 1, *place, "--output", "json").stdout)
    assert "gone" not in [one["name"] for one in listed]
    missing = run("subscription", "show", "gone", "--at", row["id"] - 1, *place)
    assert missing.exit_code == ExitCode.NOT_FOUND
